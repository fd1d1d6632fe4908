"""Every table of the paper about agents, with its 8M values next to those of the miniature.

Each function makes one table as Markdown. The paper's values are those that it prints (tests/data/paper_tables.json).
Ours come from the results of `gapfloor analyse` and, for CKA, from the records of `gapfloor cka` in the dataset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.results import AnalysisResults
from gapfloor.analysis.rows import ComparisonRow, GapRow
from gapfloor.report.cka import read_cka, seed_means

Paper = dict[str, Any]
_SHORT = {"not distinguishable": "n.d.", "equivalent": "equiv.", "not tested": "not tested"}


def build_tables(paper: Paper, results: AnalysisResults | None, data: Path) -> str:
    """All tables in the order of the paper, or a sentence while there is nothing to show."""
    if results is None:
        return "The dataset holds no complete game yet."
    tables: tuple[tuple[str, Callable[[Paper, AnalysisResults], str]], ...] = (
        ("Returns and calls on both level sets", floors),
        ("Gaps", gaps),
        ("The entropy screen", screen),
        ("Entropy over the actions that differ", merged_entropy),
        ("The screen with its lower cut moved", sweep),
        ("Merged argmax", merged_argmax),
        ("Each encoder", encoders),
        ("Normalised scores", normalised),
    )
    parts = [f"## {title}\n\n{make(paper, results)}" for title, make in tables]
    parts.append(f"## CKA with its controls\n\n{cka(paper, data)}")
    return "\n\n".join(parts)


def by_recommended(results: AnalysisResults, row: ComparisonRow | GapRow) -> Any:
    """The same comparison, or gap, by the recommended method."""
    is_gap = isinstance(row, GapRow)
    if (row.estimate if is_gap else row.delta).method == "recommended":
        return row
    other = results.other_method
    assert other is not None
    where = {name: getattr(row, name) for name in ("game", "budget", "rule", "level_set", "agent")}
    return _one(other.gaps if is_gap else other.floor_comparisons, **where)


def floors(paper: Paper, results: AnalysisResults) -> str:
    """tab:floor and tab:unmask."""
    rows = []
    for printed in _printed(paper["floor_calls"], results):
        game, level_set = printed["env"], printed["levels"]
        for rule in ("sampled", "greedy"):
            ours = _one(results.floor_comparisons, game=game, rule=rule, level_set=level_set)
            theirs = printed[rule]
            rows.append(
                (
                    game, _set_name(level_set), rule,
                    f"{_error(theirs['ret'])} ({_error(printed['floor'])})", theirs["call"],
                    f"{ours.mean:.2f} ± {ours.sem:.2f} ({ours.floor:.2f} ± {ours.floor_sem:.2f})",
                    _short(ours.call),
                    by_recommended(results, ours).decision.label,
                )
            )  # fmt: skip
    head = (
        "game",
        "levels",
        "rule",
        "paper: return (floor)",
        "call",
        "ours: return (floor)",
        "call",
        "recommended",
    )
    return _markdown(head, rows)


def references(results: AnalysisResults) -> str:
    """Held-out returns of policies that see nothing, with the call of the runs against each of them."""
    names = [
        name
        for name in dict.fromkeys(row.reference for row in results.reference_comparisons)
        if not name.startswith("constant:")  # the candidates for the best one
    ]
    rows = []
    for game in results.source.games:
        for rule in ("sampled", "greedy"):
            floor = _one(results.floor_comparisons, game=game, rule=rule, level_set="test")
            cells = [f"{floor.floor:.2f} ({_short(floor.call)})"]
            for name in names:
                found = [
                    row
                    for row in results.reference_comparisons
                    if (row.game, row.rule, row.level_set, row.reference) == (game, rule, "test", name)
                ]
                found = [row for row in found if row.agent is None] or found  # pooled, or the only agent
                cells.append(f"{found[0].floor:.2f} ({_short(found[0].call)})" if found else "")
            rows.append((game, rule, f"{floor.mean:.2f}", *cells))
    return _markdown(("game", "rule", "runs", "uniform (the floor)", *names), rows)


def gaps(paper: Paper, results: AnalysisResults) -> str:
    """tab:gap8m, with the floor's own gap."""
    rows = []
    for printed in _printed(paper["gaps_8m"], results):
        for rule in ("sampled", "greedy"):
            theirs = printed[rule]
            ours = _one(results.gaps, game=printed["env"], rule=rule, agent=None)
            interval = ours.estimate.interval
            rows.append(
                (
                    printed["env"], rule, _estimate(theirs["gap"]), _p(theirs["holm_p"]),
                    f"{ours.gap:+.2f} [{interval[0]:+.2f}, {interval[1]:+.2f}]", _p(ours.decision.p_adjusted),
                    f"{ours.floor_gap:+.2f}", by_recommended(results, ours).call,
                )
            )  # fmt: skip
    head = (
        "game",
        "rule",
        "paper: gap",
        "Holm p",
        "ours: gap",
        "Holm p",
        "our floor's gap",
        "recommended call",
    )
    return _markdown(head, rows)


def screen(paper: Paper, results: AnalysisResults) -> str:
    """tab:tiers: entropy in nats, its tier, and the tiers after merging equal actions."""
    rows = []
    for printed in _printed(paper["tiers"], results):
        ours = _one(results.screen, game=printed["env"], agent=None)
        merged = f"{printed['merged_tier_state']}, {printed['merged_tier_game']}"
        rows.append(
            (
                printed["env"], f"{printed['H']:.2f}", printed["raw_tier"], merged, printed["above_floor"],
                f"{ours.entropy:.2f}", ours.tier, f"{ours.merged_tier_state}, {ours.merged_tier_game}",
                _short(ours.call),
            )
        )  # fmt: skip
    head = (
        "game", "paper: H", "tier", "merged tier (state, game)", "call", "ours: H", "tier", "merged tier (state, game)",
        "call",
    )  # fmt: skip
    return _markdown(head, rows)


def merged_entropy(paper: Paper, results: AnalysisResults) -> str:
    """tab:merged: the share of entropy that lies on actions with the same effect."""
    rows = []
    for printed in _printed(paper["merged_entropy"], results):
        if printed["budget"] != "8M":
            continue
        ours = _one(results.screen, game=printed["env"], agent=None)
        theirs = (printed[name] for name in ("raw_H", "merged_H_state", "merged_H_game"))
        rows.append(
            (
                printed["env"], str(printed["k_global"]), " / ".join(f"{value:.2f}" for value in theirs),
                f"{printed['share_pct']}%", str(ours.k),
                f"{ours.entropy_probe:.2f} / {ours.merged_state:.2f} / {ours.merged_game:.2f}", f"{ours.share:.0%}",
            )
        )  # fmt: skip
    head = (
        "game", "paper: classes", "H raw / state / game", "share", "ours: classes", "H raw / state / game", "share",
    )  # fmt: skip
    return _markdown(head, rows)


def sweep(paper: Paper, results: AnalysisResults) -> str:
    """tab:sweep: the tiers with the lower cut at 1.8, 1.9, 2.0, 2.1 and 2.2 nats."""
    rows = []
    for printed in _printed(paper["sweep"], results):
        ours = _one(results.screen, game=printed["env"], agent=None)
        raw, state = ("".join(_letter(tier) for tier in tiers) for tiers in zip(
            *((each.raw, each.merged_state) for each in ours.sweep), strict=True
        ))  # fmt: skip
        theirs = ("".join(printed[kind].values()) for kind in ("raw", "merged_state"))
        rows.append((printed["env"], *theirs, raw, state))
    head = ("game", "paper: raw", "merged", "ours: raw", "merged")
    return _markdown(head, rows) + "\n\nOne letter per cut: L low, I intermediate, H high."


def merged_argmax(paper: Paper, results: AnalysisResults) -> str:
    """tab:merged_argmax: the addendum."""
    rows = []
    for printed in _printed(paper["merged_argmax"], results):
        game = printed["env"]
        ours = _one(results.floor_comparisons, game=game, rule="merged", level_set="test")
        pair = _one(results.pairs, game=game, rule="merged", rule_b="greedy", quantity="test")
        differs = _one(results.disagreements, game=game, rule="merged", level_set="test")
        rows.append(
            (
                game, _error(printed["merged"]), printed["merged_call"], f"{printed['merged_minus_greedy']:+.2f}",
                f"{printed['disagree_pct']}%",
                f"{ours.mean:.2f} ± {ours.sem:.2f}", _short(ours.call),
                f"{pair.difference.value:+.2f}", f"{differs.share:.0%}",
            )
        )  # fmt: skip
    head = (
        "game", "paper: merged", "call", "merged − greedy", "disagrees", "ours: merged", "call", "merged − greedy",
        "disagrees",
    )  # fmt: skip
    note = "\n\n*Disagrees* is the share of steps on which merged argmax chooses another class of actions than argmax."
    return _markdown(head, rows) + note


def encoders(paper: Paper, results: AnalysisResults) -> str:
    """tab:full8m, and the difference between the encoders."""
    names = ("train", "test", "gap")
    rows = []
    for printed in _printed(paper["agents_8m"], results):
        for rule in ("sampled", "greedy"):
            ours = _one(results.agents, game=printed["env"], rule=rule, agent=printed["encoder"].lower())
            theirs = printed[rule]
            rows.append(
                (
                    printed["env"], printed["encoder"], rule,
                    *(_error(theirs[name]) for name in names),
                    *(f"{getattr(ours, name):.2f} ± {getattr(ours, name + '_sem'):.2f}" for name in names),
                )
            )  # fmt: skip
    head = ("game", "encoder", "rule", "paper: train", "test", "gap", "ours: train", "test", "gap")
    tested = [
        row
        for row in results.encoders
        if row.quantity == "test" and row.rule != "merged" and row.difference.p == row.difference.p
    ]
    if not tested:
        return _markdown(head, rows)
    smallest = min(tested, key=lambda row: row.difference.p)
    return (
        _markdown(head, rows)
        + f"\n\nHeld-out returns of the two encoders: the smallest of {len(tested)} p-values (Welch, "
        f"uncorrected) is {_p(smallest.difference.p)}, in {smallest.game} under {smallest.rule} actions."
    )


def normalised(paper: Paper, results: AnalysisResults) -> str:
    """tab:cobbe: 0 and 1 are the published constants of the benchmark."""

    def score(game: str, rule: str, level_set: str) -> str:
        return f"{_one(results.normalised, game=game, rule=rule, level_set=level_set).score:.2f}"

    columns = (
        ("sampled", "train"), ("sampled", "test"), ("greedy", "test"), ("uniform", "train"), ("uniform", "test"),
    )  # fmt: skip
    names = ("sampled_train", "sampled_test", "greedy_test", "floor_train", "floor_test")
    rows = []
    for printed in _printed(paper["normalised"]["rows"], results):
        if printed["budget"] != "8M":
            continue
        ours = (score(printed["env"], *column) for column in columns)
        rows.append((printed["env"], *(f"{printed[name]:.2f}" for name in names), *ours))
    title = ("sampled, train", "sampled, test", "greedy, test", "floor, train", "floor, test")
    head = ("game", f"paper: {title[0]}", *title[1:], f"ours: {title[0]}", *title[1:])
    return _markdown(head, rows)


def cka(paper: Paper, data: Path) -> str:
    """tab:ckacontrol."""
    records = read_cka(data / "results" / "cka")
    rows = []
    for printed in paper["cka_control"]:
        game, encoder = printed["env"], printed["encoder"]
        members = tuple(
            each for each in records if (each.game, each.agent.lower()) == (game, encoder.lower())
        )
        ours = (f"{getattr(seed_means(members), name):.3f}" for name in "ACBD") if members else ("",) * 4
        rows.append((game, encoder, *(f"{printed[name]:.3f}" for name in "ACBD"), *ours))
    head = ("game", "encoder", "paper: A", "C", "B", "D", "ours: A", "C", "B", "D")
    return (
        _markdown(head, rows)
        + "\n\nA: training against held-out levels, C: training against training levels, rows aligned by timestep; B "
        "and D: the same with one side shuffled. If A were about generalization, it would differ from C. Shuffling "
        "removes the alignment by timestep (cka.md)."
    )


def _printed(rows: Sequence[Paper], results: AnalysisResults) -> list[Paper]:
    """The paper's rows at 8M of games that we have, in our order."""
    chosen = [row for row in rows if row["env"] in results.source.games and row.get("budget", "8M") == "8M"]
    return sorted(chosen, key=lambda row: results.source.games.index(row["env"]))


def _one(rows: Iterable[Any], **wanted: object) -> Any:
    """The row with these fields."""
    found = [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows with {wanted}, where the table needs one")
    return found[0]


def _markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _error(value: dict[str, float]) -> str:
    return f"{value['mean']:.2f} ± {value['sem']:.2f}"


def _estimate(value: dict[str, float]) -> str:
    return f"{value['est']:+.2f} [{value['lo']:+.2f}, {value['hi']:+.2f}]"


def _p(value: float | dict[str, float]) -> str:
    if isinstance(value, dict):
        return f"< {value['lt']:.1g}"
    if math.isnan(value):
        return ""
    return f"{value:.2g}" if value >= 0.001 else "< 0.001"


def _short(call: str | None) -> str:
    return _SHORT.get(call or "", call or "")


def _set_name(level_set: str) -> str:
    return {"train": "training", "test": "held-out"}[level_set]


def _letter(tier: str | None) -> str:
    return (tier or "?")[0].upper()
