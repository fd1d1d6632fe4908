"""CKA between training and held-out features with its controls: ckacontrol."""

from __future__ import annotations

from gapfloor.report.cka_input import CkaRecord, seed_mean
from gapfloor.report.findings import Findings, agent_name
from gapfloor.report.tables.wording import sentence
from gapfloor.tables.cells import bare, text_cell
from gapfloor.tables.table import Column, ColumnGroup, Missing, Table, Text


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
        seeds=f"{'/'.join(map(str, seeds))} {'seed' if seeds == [1] else 'seeds'}",
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
            ColumnGroup(Text(f"n={first.n}", f"$n{{=}}{first.n}$") if first.n else Text("Null"), 2, 4),
            ColumnGroup(
                Text(f"2×2 (n={first.n_control})", rf"$2\times2$ ($n{{=}}{first.n_control}$)")
                if first.n_control
                else Text("2×2"),
                5,
                8,
            ),
        ),
        separation="3pt",
    )
