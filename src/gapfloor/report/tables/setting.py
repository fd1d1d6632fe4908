"""The tables around the measurement: cobbe, hyper, audit, commits, ckacontrol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gapfloor.analysis.score_results import NormalisedResult
from gapfloor.audit.ledger.entries import LedgerEntry, count_ledger, load_ledger
from gapfloor.report.cka_input import CkaRecord, seed_mean
from gapfloor.report.escape import escape_tex
from gapfloor.report.findings import FLOOR, SUITE, TEST, TRAIN, Findings, agent_name, rule_title, steps_of
from gapfloor.report.formats import Cell, bare, count_word, empty_cell, missing_cell, text_cell
from gapfloor.report.table import Column, Group, Missing, Rule, Table, Text
from gapfloor.report.tables.wording import sentence, status_of

#: How hyperparameters of the trainer's header are named in a table; others keep their own name.
HYPERPARAMETERS = {
    "environments": Text("Parallel environments"),
    "rollout_length": Text("Rollout length"),
    "budget_steps": Text("Total timesteps"),
    "learning_rate": Text("Learning rate"),
    "discount": Text("Discount factor γ"),
    "gae_lambda": Text("GAE λ"),
    "minibatches": Text("Minibatches per update"),
    "epochs": Text("Update epochs"),
    "clip": Text("Clip coefficient"),
    "value_clipping": Text("Value loss clipping"),
    "entropy_coefficient": Text("Entropy coefficient"),
    "value_coefficient": Text("Value loss coefficient"),
    "max_gradient_norm": Text("Max gradient norm"),
    "adam_epsilon": Text("Adam ε"),
    "rewards": Text("Reward normalization / clipping"),
}
#: Fields that say how the arithmetic is cut into pieces; they are no hyperparameters of the method.
_NOT_SHOWN = {"micro_batch", "inference_batch"}
_REWARDS = {"raw": "none", "cleanrl": "normalized, clipped to ±10"}


def cobbe(findings: Findings) -> Table | Missing:
    """Normalised scores with the benchmark's published constants."""
    title = "Normalised scores"
    columns_of = _score_columns(findings)
    rows: list[tuple[Cell, ...] | Rule] = []
    every: list[NormalisedResult] = []
    for budget in findings.budgets:
        block: list[tuple[Cell, ...]] = []
        for env in findings.envs(budget):
            found = [
                findings.normalised(env.game, budget, rule, levels, mode=env.mode)
                for rule, levels in columns_of
            ]
            first = next((row for row in found if row), None)
            if first is None:
                continue
            every += [row for row in found if row]
            block.append(
                (
                    text_cell(findings.name(env)),
                    text_cell(budget),
                    _constants(first),
                    *(bare(row.score) if row else missing_cell() for row in found),
                )
            )
        if block and rows:
            rows.append(Rule("midrule"))
        rows += block
    if not rows:
        return Missing("cobbe", title, "no published normalisation constants for these games and modes")
    means: list[tuple[Cell, ...]] = []
    for budget in findings.budgets:
        found = [findings.normalised(SUITE, budget, rule, levels) for rule, levels in columns_of]
        # The floor's mean over training levels is left blank, as in the paper: the floor's level sets are the
        # same whatever the budget, and the table compares held-out scores.
        if any(found):
            means.append(
                (
                    text_cell("mean"),
                    text_cell(budget),
                    empty_cell(2),
                    *(
                        empty_cell()
                        if (rule, levels) == (FLOOR, TRAIN)
                        else (bare(row.score) if row else missing_cell())
                        for row, (rule, levels) in zip(found, columns_of, strict=True)
                    ),
                )
            )
    if means:
        rows += [Rule("midrule"), *means]
    groups: list[tuple[str, int, int]] = []
    for at, (rule, _) in enumerate(columns_of):
        label = "Uniform floor" if rule == FLOOR else rule_title(rule)
        if groups and groups[-1][0] == label:
            groups[-1] = (label, groups[-1][1], at + 3)
        else:
            groups.append((label, at + 3, at + 3))
    return Table(
        name="cobbe",
        title=title,
        caption=sentence(
            "Normalised scores, (R − R_min)/(R_max − R_min) of the pooled mean with the published "
            "constants of each game and mode; the mean is unweighted over games. Floor: uniform-random "
            "policy on the same draws."
        ),
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Budget"), "r", ("budget",)),
            Column(Text("R_min, R_max", r"$R_{\min}$, $R_{\max}$"), "r", ("r_min", "r_max")),
            *(
                Column(Text(levels.capitalize()), "r", (f"{'floor' if rule == FLOOR else rule}_{levels}",))
                for rule, levels in columns_of
            ),
        ),
        rows=tuple(rows),
        groups=tuple(Group(Text(label), first, last) for label, first, last in groups),
        separation="4pt",
        status=status_of(every),
    )


def hyper(by_budget: Mapping[str, Mapping[str, Any]], *, note: str = "") -> Table | Missing:
    """Hyperparameters, one row each; a value that differs between budgets names them."""
    title = "PPO hyperparameters"
    if not by_budget:
        return Missing("hyper", title, note or "the data hold no checkpoints whose headers would say")
    by_budget = {budget: by_budget[budget] for budget in sorted(by_budget, key=steps_of)}
    names = list(HYPERPARAMETERS)
    names += sorted({name for values in by_budget.values() for name in values} - set(names) - _NOT_SHOWN)
    rows = []
    for name in names:
        shown = {
            budget: _hyper_text(name, values[name]) for budget, values in by_budget.items() if name in values
        }
        if not shown:
            continue
        texts = list(dict.fromkeys(shown.values()))
        if len(texts) == 1:
            plain = texts[0]
        elif name == "budget_steps":
            plain = "; ".join(texts)
        else:
            plain = "; ".join(f"{text} ({budget})" for budget, text in shown.items())
        label = HYPERPARAMETERS.get(name, Text(name.replace("_", " ").capitalize()))
        rows.append(
            (Cell(label.plain, label.tex, (name,)), Cell(plain, _power_of_ten(escape_tex(plain)), (plain,)))
        )
    return Table(
        name="hyper",
        title=title,
        caption=sentence("Hyperparameters of the runs, as their checkpoints' headers record them."),
        columns=(
            Column(Text("Hyperparameter"), "l", ("name",)),
            Column(Text("Value"), "l", ("value",)),
        ),
        rows=tuple(rows),
        notes=(note,) if note else (),
        separation="6pt",
    )


def audit(entries: Sequence[LedgerEntry] | None = None) -> Table:
    """The audit: which code bases sample at test time, and which report in-loop returns."""
    ledger = tuple(load_ledger() if entries is None else entries)
    counts = count_ledger(ledger)
    marks = {"*": ("*", "$^*$"), "dagger": ("†", r"$^\dagger$"), "ddagger": ("‡", r"$^\ddagger$")}
    rows = []
    for entry in sorted(ledger, key=lambda entry: entry.audit_row):
        mark = marks.get(entry.footnote_mark or "", ("", ""))
        stochastic = _mark(entry.is_stochastic)
        rows.append(
            (
                text_cell(entry.name),
                text_cell(entry.venue),
                Cell(stochastic.plain + mark[0], stochastic.tex + mark[1], stochastic.raw),
                _mark(entry.in_loop),
            )
        )
    footnotes = [
        f"{marks[entry.footnote_mark][0]} {entry.name}: {entry.footnote}."
        for entry in ledger
        if entry.footnote and entry.footnote_mark in marks
    ]
    caption = sentence(
        "Which of {codebases} released ProcGen code bases sample the test-time actions of their "
        "policy-gradient agents (Stoch.), and which report held-out returns as a running mean from inside "
        "the training loop (In-loop). {sample} of the {heldout} that evaluate on held-out levels sample; "
        "{inherit} of them without an explicit choice. {footnotes}",
        codebases=count_word(counts.codebases).plain,
        sample=count_word(counts.sample).plain.capitalize(),
        heldout=count_word(counts.evaluate_heldout).plain,
        inherit=count_word(counts.without_explicit_choice).plain,
        footnotes=" ".join(footnotes),
    )
    return Table(
        name="audit",
        title="Audit of released evaluation code",
        caption=caption,
        columns=(
            Column(Text("Codebase"), "l", ("codebase",)),
            Column(Text("Venue"), "c", ("venue",)),
            Column(Text("Stoch."), "c", ("stochastic",)),
            Column(Text("In-loop"), "c", ("in_loop",)),
        ),
        rows=tuple(rows),
        size="footnotesize",
        separation="4pt",
    )


def commits(entries: Sequence[LedgerEntry] | None = None) -> Table:
    """Commit and evidence location of every code base, corrected where the paper's location was wrong."""
    ledger = tuple(load_ledger() if entries is None else entries)
    rows = []
    for entry in ledger:
        star = "*" if entry.is_corrected else ""
        rows.append(
            (
                text_cell(entry.name),
                text_cell(entry.venue),
                text_cell(entry.short_commit, tex=rf"\texttt{{{entry.short_commit}}}"),
                _mark(entry.is_stochastic),
                _mark(entry.in_loop),
                Cell(
                    entry.location + star,
                    rf"\texttt{{{escape_tex(entry.location)}}}{'$^*$' if star else ''}",
                    (entry.location,),
                ),
            )
        )
    corrected = [entry for entry in ledger if entry.is_corrected]
    notes = tuple(f"* {entry.name}, corrected: {entry.correction}" for entry in corrected)
    return Table(
        name="commits",
        title="Commits and evidence of the audit",
        caption=sentence(
            "Commit and evidence of each code base. S: sampled test-time actions, L: in-loop test returns. "
            "An asterisk marks a location that differs from the one first published."
        ),
        columns=(
            Column(Text("Codebase"), "l", ("codebase",)),
            Column(Text("Venue"), "l", ("venue",)),
            Column(Text("Commit"), "l", ("commit",)),
            Column(Text("S"), "c", ("stochastic",)),
            Column(Text("L"), "c", ("in_loop",)),
            Column(Text("Location (file:line)"), "l", ("location",)),
        ),
        rows=tuple(rows),
        notes=notes,
        size="tiny",
        separation="2pt",
        is_wide=True,
    )


def ckacontrol(findings: Findings, records: tuple[CkaRecord, ...]) -> Table | Missing:
    """Within-agent train v. test CKA with its permutation, analytic and pairing controls."""
    title = "Controls on train-versus-test CKA"
    budgets = list(dict.fromkeys(record.budget for record in records))
    budget = findings.main_budget if findings.main_budget in budgets else (budgets[0] if budgets else "")
    chosen = [record for record in records if record.budget == budget]
    groups: dict[tuple[str, str], list[CkaRecord]] = {}
    for record in chosen:
        if record.A == record.A:
            groups.setdefault((record.game, record.agent), []).append(record)
    if not groups:
        return Missing("ckacontrol", title, "no CKA results (gapfloor cka writes them to results/cka)")
    games = {env.game: at for at, env in enumerate(findings.all_envs)}
    agents = {agent.lower(): at for at, agent in enumerate(findings.source.agents)}
    rows = []
    for game, agent in sorted(
        groups,
        key=lambda key: (
            games.get(key[0], len(games)),
            key[0],
            agents.get(key[1].lower(), len(agents)),
            key[1],
        ),
    ):
        members = tuple(groups[game, agent])
        rows.append(
            (
                text_cell(game),
                text_cell(agent_name(agent)),
                bare(seed_mean(members, lambda record: record.as_computed), 3),
                bare(seed_mean(members, lambda record: record.perm_mean), 3),
                bare(seed_mean(members, lambda record: record.analytic), 3),
                bare(seed_mean(members, lambda record: record.A), 3),
                bare(seed_mean(members, lambda record: record.C), 3),
                bare(seed_mean(members, lambda record: record.B), 3),
                bare(seed_mean(members, lambda record: record.D), 3),
                bare(seed_mean(members, lambda record: record.pr), 1),
            )
        )
    first = next(iter(groups.values()))[0]
    seeds = sorted({len(members) for members in groups.values()})
    caption = sentence(
        "Controls on CKA between an agent's features on training and on held-out levels{budget}, mean over "
        "{seeds}. As computed, permutation and analytic nulls with {n} rows; A: train v. test, C: train v. "
        "train, rows aligned by timestep; B and D: the same with one side's rows shuffled ({shuffles}), "
        "with {control} rows. PR: participation ratio.",
        budget=f" at {budget}" if budget else "",
        seeds=f"{'/'.join(map(str, seeds))} seeds",
        n=str(first.n or "as many"),
        shuffles=f"mean of {first.permutations} shuffles" if first.permutations else "mean of shuffles",
        control=str(first.n_control or "as many"),
    )
    return Table(
        name="ckacontrol",
        title=title,
        caption=caption,
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Enc."), "l", ("agent",)),
            Column(Text("As computed"), "r", ("as_computed",)),
            Column(Text("Perm."), "r", ("permutation",)),
            Column(Text("Analytic"), "r", ("analytic",)),
            *(Column(Text(part), "r", (part,)) for part in ("A", "C", "B", "D")),
            Column(Text("PR"), "r", ("participation_ratio",)),
        ),
        rows=tuple(rows),
        groups=(
            Group(Text(f"n={first.n}", f"$n{{=}}{first.n}$") if first.n else Text("Null"), 2, 4),
            Group(
                Text(f"2×2 (n={first.n_control})", rf"$2\times2$ ($n{{=}}{first.n_control}$)")
                if first.n_control
                else Text("2×2"),
                5,
                8,
            ),
        ),
        separation="3pt",
    )


def _score_columns(findings: Findings) -> list[tuple[str, str]]:
    columns = [(findings.primary, TRAIN), (findings.primary, TEST)]
    if findings.secondary:
        columns.append((findings.secondary, TEST))
    return [*columns, (FLOOR, TRAIN), (FLOOR, TEST)]


def _constants(row: NormalisedResult) -> Cell:
    text = f"{row.r_min:g}, {row.r_max:g}"
    return Cell(text.replace("-", "−"), text, (row.r_min, row.r_max))


def _hyper_text(name: str, value: Any) -> str:
    if name == "rewards":
        return _REWARDS.get(str(value), str(value))
    if name == "budget_steps" and isinstance(value, int):
        millions = value / 1e6
        return f"{millions:g}M" if value >= 10**6 else f"{value / 1e3:g}k"
    if name == "learning_rate":
        return f"{_scientific(value)} (no annealing)"
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    if isinstance(value, float):
        return _scientific(value) if 0 < abs(value) < 1e-3 else f"{value:g}"
    return str(value)


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:e}".split("e")
    return f"{float(mantissa):g}×10^{int(exponent)}"


def _power_of_ten(tex: str) -> str:
    parts = tex.split(r"$\times$10\textasciicircum{}")
    if len(parts) == 1:
        return tex
    head, _, factor = parts[0].rpartition(" ")
    exponent, _, rest = parts[1].partition(" ")
    return f"{head} ${factor}\\times10^{{{exponent}}}$ {rest}".strip()


def _mark(value: bool | None) -> Cell:
    if value is None:
        return text_cell("n/a")
    return text_cell("✓", tex=r"\checkmark", raw="yes") if value else text_cell("–", tex="--", raw="no")
