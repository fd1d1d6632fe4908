"""Tables beyond the paper's: the other method, other estimators, differences between agents, merged and profiles.

Each is a list of columns over rows of the analysis. A column that nothing fills is left out, and a table without a
number is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gapfloor.analysis.columns import DIFFERENCES, LABELS, PROFILES, SENSITIVITY, TESTED
from gapfloor.analysis.rows import Row
from gapfloor.report.findings import FLOOR, MERGED, Findings, agent_name
from gapfloor.report.tables.wording import sentence, status_of
from gapfloor.tables.cells import Cell, is_number, text_cell
from gapfloor.tables.column import Column
from gapfloor.tables.table import Table

_RULE = Column(
    "rule",
    "Rule",
    "How actions were chosen.",
    lambda row: text_cell("floor" if row.rule == FLOOR else row.rule),
)
_AGENTS = Column(
    "agent",
    "Difference of",
    "The two agents; the first minus the second.",
    lambda row: text_cell(f"{agent_name(row.agent)} − {agent_name(row.agent_b)}"),
)
_RULES = Column(
    "rule",
    "Difference of",
    "The two rules; the first minus the second.",
    lambda row: text_cell(f"{row.rule} − {row.rule_b}"),
)
_BUDGET, _QUANTITY, _LEVELS = (
    replace(LABELS[name], title=LABELS[name].title.capitalize())
    for name in ("budget", "quantity", "level_set")
)
_TESTS = tuple(DIFFERENCES[name] for name in ("difference", "p", "holm_p"))
_BY_OTHER = {"paper": "the paper's tests", "recommended": "the recommended tests"}


def further_tables(findings: Findings) -> list[Table]:
    """Every further table that the data allow."""
    results = findings.results
    interval_words = {"paper": "95% bootstrap interval", "recommended": "Student's 95% interval"}[
        findings.plan.floor_method
    ]
    rules = (findings.primary, findings.secondary)
    made = [
        _other_method(findings),
        _table(
            findings,
            "sensitivity",
            "Other estimators and assumptions",
            "The comparisons with the floor and the gaps by other estimators: Student's interval over runs, the exact "
            "sign-flip p (and the smallest it can reach at this number of runs), the difference with runs and levels "
            "crossed (for new levels of the generator), the share of episode variance between levels, the call with "
            "agents as strata, the floor's SEM clustered by level, the smallest difference found with 80% power at "
            "the hardest Holm step, and where the gap of a new run is expected.",
            (_BUDGET, _RULE, _QUANTITY, *SENSITIVITY.values()),
            (row for row in results.sensitivity if row.rule in rules),
        ),
        _table(
            findings,
            "agent_differences",
            "Differences between agents",
            f"Differences between agents with their {interval_words}, Welch over runs, Holm over games and pairs of "
            "agents; and the smallest and largest p when the draws are taken one at a time. Estimand: these levels.",
            (
                _BUDGET,
                _RULE,
                _QUANTITY,
                _AGENTS,
                *_TESTS,
                DIFFERENCES["p_draw_min"],
                DIFFERENCES["p_draw_max"],
            ),
            (row for row in results.encoders if row.rule in rules),
        ),
        _table(
            findings,
            "rule_differences",
            "Differences between rules",
            f"Differences between rules of the same runs with their {interval_words}, paired over runs, Holm over "
            "games, and the exact sign-flip p. Estimand: these levels.",
            (_BUDGET, _RULES, _QUANTITY, *_TESTS, DIFFERENCES["sign_flip_p"]),
            (row for row in results.pairs if row.rule != MERGED or row.quantity == "test"),
        ),
        _table(
            findings,
            "profiles",
            "Normalised scores over the suite",
            "Interquartile mean of run scores over all games, with an interval that resamples runs within games, and "
            "the mean over games of the probability that an episode beats a floor episode (ties count half).",
            (_BUDGET, _RULE, _LEVELS, *PROFILES.values()),
            results.profiles,
        ),
    ]
    return [table for table in made if table is not None]


def _other_method(findings: Findings) -> Table | None:
    other = findings.results.other_method
    if other is None:
        return None
    names = list(dict.fromkeys((other.floor_method, other.gap_method)))
    by = " and ".join(_BY_OTHER[name] for name in names)
    return _table(
        findings,
        "other_method",
        f"The same comparisons by {by}",
        f"What {by} say of the same comparisons with the floor (quantities train and test) and gaps. No call, number, "
        "figure or sentence elsewhere in this report comes from this table.",
        (_BUDGET, _RULE, TESTED["quantity"], LABELS["n"], *list(TESTED.values())[1:]),
        (*other.floor_comparisons, *other.gaps),
    )


def _table(
    findings: Findings,
    name: str,
    title: str,
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Row],
) -> Table | None:
    found = list(rows)
    env = Column(
        "env",
        "Env",
        "The game, with its mode where there are several.",
        lambda row: text_cell(findings.name(findings.env_of(row)) if row.game != "mean" else "all games"),
    )
    wanted = (env, *columns)
    cells = [tuple(column.cell(row) for column in wanted) for row in found]
    kept = [
        at
        for at, column in enumerate(wanted)
        if column.align == "l" or any(is_number(_first(row[at])) for row in cells)
    ]
    if not cells or not any(wanted[at].align == "r" for at in kept):
        return None
    dropped = [column.title for at, column in enumerate(wanted) if at not in kept]
    return Table(
        name=name,
        title=title,
        caption=sentence(caption.replace("{", "(").replace("}", ")")),
        columns=tuple(wanted[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in cells),
        notes=(f"Left out because the data do not allow it: {', '.join(dropped)}.",) if dropped else (),
        size="scriptsize",
        separation="2.5pt",
        is_wide=True,
        status=status_of(found),
    )


def _first(cell: Cell) -> float | None:
    value = cell.raw[0]
    return float(value) if isinstance(value, int | float) else None
