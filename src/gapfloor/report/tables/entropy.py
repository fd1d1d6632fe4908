"""The entropy screen's tables: tiers, sweep, merged."""

from __future__ import annotations

from gapfloor.analysis.rows import Row, ScreenRow
from gapfloor.report.findings import Env, Findings
from gapfloor.report.tables.wording import at_budget, left_out, sentence, status_of, suffix
from gapfloor.tables.cells import (
    Cell,
    call_cell,
    fixed,
    integer,
    joined,
    percent,
    text_cell,
    tier_cell,
    tier_letter,
)
from gapfloor.tables.table import Column, ColumnGroup, Missing, RuleLine, Table, Text

_NO_CELLS = (
    "no cell records with entropies over numbered actions (gapfloor evaluate writes them; an episode file and "
    "real-valued actions have none)"
)


def tiers(findings: Findings, budget: str) -> Table | Missing:
    """The screen and the above-floor check."""
    name = suffix(findings, "tiers", budget)
    title = f"Entropy screen and above-floor check{at_budget(budget)}"
    found, without = _screens(findings, budget)
    if not found:
        return Missing(name, title, _NO_CELLS)
    first, second = findings.primary[:1], (findings.secondary or "")[:1]
    rows = []
    for env, row in found:
        cells = [
            text_cell(findings.name(env)),
            fixed(row.entropy, 3),
            fixed(row.fraction * 100, 1),
            tier_cell(row.tier),
            joined(tier_cell(row.merged_tier_state), tier_cell(row.merged_tier_game)),
            percent(row.share),
            call_cell(row.call),
            fixed(row.gap_primary, sign=True),
        ]
        if findings.secondary:
            cells.append(fixed(row.gap_secondary, sign=True))
        rows.append(tuple(cells))
    columns = [
        Column(Text("Env"), "l", ("env",)),
        Column(Text("H", "$H$"), "r", ("entropy",)),
        Column(Text("% max"), "r", ("percent_of_maximum",)),
        Column(Text("Raw tier"), "l", ("raw_tier",)),
        Column(Text("Merged (state / game)"), "l", ("merged_tier_state", "merged_tier_game")),
        Column(Text("Share"), "l", ("share",)),
        Column(Text("Above-floor"), "r", ("call",)),
        Column(Text(f"Gap ({first})"), "c", (f"gap_{findings.primary}",)),
    ]
    if findings.secondary:
        columns.append(Column(Text(f"Gap ({second})"), "r", (f"gap_{findings.secondary}",)))
    low, high = findings.plan.cuts
    caption = sentence(
        "Entropy screen and above-floor check{budget}{over_agents}. H: raw-action "
        "entropy in nats on the states of {rule} evaluation, mean over both level sets (maximum "
        "{maximum}). Tiers: low below {low}, intermediate to {high}, high above; merged tiers after adding "
        "up the probabilities of actions with the same effect, by state / by game, with the cuts at the "
        "same fractions of the maximum. Share: part of the raw entropy that lies on such actions. "
        "Above-floor: call of the {rule} held-out return. Gaps: train − test under {rules}.",
        budget=at_budget(budget),
        over_agents=findings.over_agents,
        rule=findings.primary,
        maximum=f"{found[0][1].maximum:.3f}",
        low=f"{low:g}",
        high=f"{high:g}",
        rules=f"{findings.primary} ({first})"
        + (f" and {findings.secondary} ({second})" if findings.secondary else ""),
    )
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        notes=left_out(findings, without, "cell records"),
        status=status_of(row for _, row in found),
    )


def sweep(findings: Findings, budget: str) -> Table | Missing:
    """The tiers as the lower cut moves."""
    name = suffix(findings, "sweep", budget)
    title = f"Tiers under other cuts{at_budget(budget)}"
    found, without = _screens(findings, budget)
    found = [(env, row) for env, row in found if row.sweep]
    if not found:
        return Missing(name, title, _NO_CELLS)
    cuts = [point.cut for point in found[0][1].sweep]
    rows = []
    for env, row in found:
        points = {point.cut: point for point in row.sweep}
        rows.append(
            (
                text_cell(findings.name(env)),
                fixed(row.entropy, 3),
                *(tier_letter(points[cut].raw if cut in points else None) for cut in cuts),
                *(tier_letter(points[cut].merged_state if cut in points else None) for cut in cuts),
            )
        )
    width = len(cuts)
    high = findings.plan.cuts[1]
    caption = sentence(
        "Tier as the low/intermediate cut T moves (the high cut stays at {high}; merged cuts at the same "
        "fractions of each state's maximum). L, I, H: low, intermediate, high residual entropy{budget}, "
        "{rule}-evaluation states.",
        high=f"{high:g}",
        budget=at_budget(budget),
        rule=findings.primary,
    )
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("H", "$H$"), "r", ("entropy",)),
            *(Column(Text(f"{cut:.1f}", f"${cut:.1f}$"), "c", (f"raw_{cut:.1f}",)) for cut in cuts),
            *(Column(Text(f"{cut:.1f}", f"${cut:.1f}$"), "c", (f"merged_state_{cut:.1f}",)) for cut in cuts),
        ),
        rows=tuple(rows),
        groups=(
            ColumnGroup(Text("Raw"), 1, 1 + width),
            ColumnGroup(Text("Merged (per state)"), 2 + width, 1 + 2 * width),
        ),
        notes=left_out(findings, without, "cell records"),
        separation="6pt",
        status=status_of(row for _, row in found),
    )


def merged(findings: Findings) -> Table | Missing:
    """Entropy before and after merging, at every budget."""
    title = "Entropy before and after merging equal actions"
    rows: list[tuple[Cell, ...] | RuleLine] = []
    every: list[Row] = []
    without: list[str] = []
    # The main budget comes first and bears no label, as in the paper.
    ordered = sorted(findings.budgets, key=lambda budget: budget != findings.main_budget)
    for budget in ordered:
        found, lacking = _screens(findings, budget)
        without += [f"{findings.name(env)}{at_budget(budget)}" for env in lacking]
        if found and rows:
            rows.append(RuleLine("midrule"))
        for env, row in found:
            every.append(row)
            label = findings.name(env)
            if budget != findings.main_budget:
                label = f"{label} ({budget})"
            rows.append(
                (
                    text_cell(label),
                    integer(row.k),
                    fixed(row.entropy_probe, 3),
                    fixed(row.merged_state, 3),
                    fixed(row.merged_game, 3),
                    percent(row.share),
                    fixed(row.entropy_greedy, 3),
                    fixed(row.entropy_first, 3),
                )
            )
    if not rows:
        return Missing("merged", title, _NO_CELLS)
    caption = sentence(
        "Entropy in nats on the states of {rule} evaluation{budget}{more} before and after adding up the "
        "probabilities of actions with the same effect. k: distinct actions of the game. Share: part of "
        "the raw entropy within classes, on the same states. Last two columns: raw entropy on the states "
        "of greedy evaluation, and on the first 1024 states only.",
        rule=findings.primary,
        budget=at_budget(findings.main_budget),
        more=" and at other budgets below the line" if any(isinstance(row, RuleLine) for row in rows) else "",
    )
    return Table(
        name="merged",
        title=title,
        caption=caption,
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("k (global)", "$k$ (global)"), "r", ("k",)),
            Column(Text("Raw H", "Raw $H$"), "r", ("raw_entropy",)),
            Column(Text("Merged H (state)", "Merged $H$ (state)"), "r", ("merged_state",)),
            Column(Text("Merged H (game)", "Merged $H$ (game)"), "r", ("merged_game",)),
            Column(Text("Share"), "r", ("share",)),
            Column(Text("Greedy states"), "r", ("greedy_states",)),
            Column(Text("First 1024"), "r", ("first_1024",)),
        ),
        rows=tuple(rows),
        notes=(f"Left out for lack of cell records: {', '.join(without)}.",) if without else (),
        separation="4pt",
        status=status_of(every),
    )


def _screens(findings: Findings, budget: str) -> tuple[list[tuple[Env, ScreenRow]], list[Env]]:
    found, without = [], []
    for env in findings.envs(budget):
        row = findings.screen(env, budget)
        if row is None:
            without.append(env)
        else:
            found.append((env, row))
    return found, without
