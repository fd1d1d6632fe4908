"""The paper's findings, and what the miniature study says about each of them.

A finding is judged by a rule that is written here, on results that `gapfloor analyse` computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.analysis.results import AnalysisResults

Verdict = Literal["shown", "not yet", "contradicted", "no data yet"]
ALPHA = 0.05


@dataclass(frozen=True)
class Judged:
    """A finding with both sides and the verdict."""

    sentence: str
    paper: str
    ours: str
    verdict: Verdict


class Sides:
    """The paper's printed values and our results, by game."""

    def __init__(self, paper: dict[str, Any], results: AnalysisResults | None) -> None:
        self.unmask = {row["env"]: row for row in paper["unmask"]}
        self.merged = {row["env"]: row for row in paper["merged_argmax"]}
        self.tiers = {row["env"]: row for row in paper["tiers"]}
        self.gaps = {row["env"]: row for row in paper["gaps_8m"]}
        self.results = results

    def comparison(self, game: str, rule: str, level_set: str = "test") -> Any:
        """Our comparison with the floor; None where it was not measured."""
        rows = self.results.floor_comparisons if self.results else ()
        return _only(row for row in rows if (row.game, row.rule, row.level_set) == (game, rule, level_set))

    def gap(self, game: str, rule: str) -> Any:
        """The gap of a game under a rule; None where there is none yet."""
        rows = self.results.gaps if self.results else ()
        return _only(row for row in rows if (row.game, row.rule, row.agent) == (game, rule, None))

    def pair(self, game: str, rule_a: str, rule_b: str, quantity: str) -> Any:
        """Our paired difference of two rules."""
        rows = self.results.pairs if self.results else ()
        key = (game, rule_a, rule_b, quantity)
        return _only(row for row in rows if (row.game, row.rule, row.rule_b, row.quantity) == key)

    def screen(self, game: str) -> Any:
        """Our entropy screen of a game, both agents together."""
        rows = self.results.screen if self.results else ()
        return _only(row for row in rows if row.game == game and row.agent is None)


def judge(paper: dict[str, Any], results: AnalysisResults | None) -> list[Judged]:
    """Every finding, in the order of the paper."""
    sides = Sides(paper, results)
    return [finding(sides) for finding in _findings()]


def _findings() -> Iterator[Callable[[Sides], Judged]]:
    yield _call("In miner, the sampled policy is above the floor on held-out levels.", "miner", "sampled")
    yield _call("In miner, the argmax of the same policy is below the floor.", "miner", "greedy")
    yield _call("In coinrun, the sampled policy is above the floor.", "coinrun", "sampled")
    yield _call("In coinrun, argmax cannot be distinguished from the floor.", "coinrun", "greedy")
    yield _call("In heist, the sampled policy cannot be distinguished from the floor.", "heist", "sampled")
    yield _call("In heist, argmax is below the floor.", "heist", "greedy")
    for game in ("starpilot", "fruitbot"):
        for rule in ("sampled", "greedy"):
            words = "the sampled policy" if rule == "sampled" else "argmax"
            yield _call(f"In {game}, {words} is above the floor.", game, rule)
    yield _difference("In fruitbot, argmax scores more than sampling.", "fruitbot", sign=-1)
    yield _difference("In miner, sampling scores more than argmax.", "miner", sign=1)
    yield _no_fixed_sign
    yield _gap("In heist, the sampled gap is larger than the greedy gap.", "heist")
    yield _gap("In miner, the sampled gap is larger than the greedy gap.", "miner")
    yield _overcalled("Raw entropy flags miner, although its sampled policy is above the floor.", "miner")
    yield _share
    yield _call(
        "Merging equal actions does not help miner: merged argmax is below the floor.", "miner", "merged"
    )


def _call(sentence: str, game: str, rule: str) -> Callable[[Sides], Judged]:
    def finding(sides: Sides) -> Judged:
        printed = sides.unmask[game]
        if rule == "merged":
            value, theirs = sides.merged[game]["merged"], sides.merged[game]["merged_call"]
        else:
            value, theirs = printed[rule]["ret"], printed[rule]["call"]
        paper = f"{value['mean']:.2f} against {printed['floor']['mean']:.2f}: {_words(theirs)}"
        row = sides.comparison(game, rule)
        if row is None:
            return Judged(sentence, paper, "", "no data yet")
        ours = f"{row.mean:.2f} against {row.floor:.2f}: {row.call}"
        return Judged(sentence, paper, ours, _same_call(_words(theirs), row.call))

    return finding


def _words(call: str) -> str:
    return {"n.d.": "not distinguishable", "equiv.": "equivalent"}.get(call, call)


def _same_call(theirs: str, ours: str) -> Verdict:
    """A floor that is missed is not yet shown; the other side of it, or a side where they saw none, contradicts."""
    undecided = ("not distinguishable", "equivalent")
    if theirs == ours or (theirs in undecided and ours in undecided):
        return "shown"
    return "not yet" if ours in (*undecided, "not tested") else "contradicted"


def _signed(estimate: float, p: float, *, sign: int) -> Verdict:
    if not p < ALPHA:
        return "not yet"
    return "shown" if estimate * sign > 0 else "contradicted"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _paired(row: Any) -> str:
    return f"{row.difference.value:+.2f} (paired {_p(row.difference.p)}, {row.n} runs)"


def _difference(sentence: str, game: str, *, sign: int) -> Callable[[Sides], Judged]:
    def finding(sides: Sides) -> Judged:
        printed = sides.unmask[game]
        paper = (
            f"{printed['sampled']['ret']['mean'] - printed['greedy']['ret']['mean']:+.2f} (sampled - greedy)"
        )
        row = sides.pair(game, "sampled", "greedy", "test")
        if row is None:
            return Judged(sentence, paper, "", "no data yet")
        return Judged(
            sentence, paper, _paired(row), _signed(row.difference.value, row.difference.p, sign=sign)
        )

    return finding


def _no_fixed_sign(sides: Sides) -> Judged:
    sentence = (
        "The effect of the rule has no fixed sign: sampling scores more in some games and less in others."
    )
    effects = {
        game: row["sampled"]["ret"]["mean"] - row["greedy"]["ret"]["mean"]
        for game, row in sides.unmask.items()
    }
    lowest, highest = min(effects, key=effects.__getitem__), max(effects, key=effects.__getitem__)
    paper = f"{lowest} {effects[lowest]:+.2f}, {highest} {effects[highest]:+.2f}"
    rows = [
        row for game in sides.unmask if (row := sides.pair(game, "sampled", "greedy", "test")) is not None
    ]
    if len(rows) < 2:
        return Judged(sentence, paper, "", "no data yet")
    ours = ", ".join(f"{row.game} {row.difference.value:+.2f} ({_p(row.difference.p)})" for row in rows)
    signs = {row.difference.value > 0 for row in rows if row.difference.p < ALPHA}
    return Judged(sentence, paper, ours, "shown" if len(signs) == 2 else "not yet")


def _gap(sentence: str, game: str) -> Callable[[Sides], Judged]:
    def finding(sides: Sides) -> Judged:
        printed = sides.gaps[game]
        paper = f"{printed['sampled']['gap']['est']:+.2f} and {printed['greedy']['gap']['est']:+.2f}"
        row = sides.pair(game, "sampled", "greedy", "gap")
        if row is None:
            return Judged(sentence, paper, "", "no data yet")
        sampled, greedy = (sides.gap(game, rule).gap for rule in ("sampled", "greedy"))
        ours = f"{sampled:+.2f} and {greedy:+.2f}; difference {_paired(row)}"
        return Judged(sentence, paper, ours, _signed(row.difference.value, row.difference.p, sign=1))

    return finding


def _overcalled(sentence: str, game: str) -> Callable[[Sides], Judged]:
    def finding(sides: Sides) -> Judged:
        printed = sides.tiers[game]
        paper = f"{printed['H']:.2f} nats, {printed['raw_tier']}; {_words(printed['above_floor'])}"
        screen, row = sides.screen(game), sides.comparison(game, "sampled")
        if screen is None or row is None:
            return Judged(sentence, paper, "", "no data yet")
        ours = f"{screen.entropy:.2f} nats, {screen.tier}; {row.call}"
        is_shown = screen.tier != "low" and row.call == "above"
        return Judged(sentence, paper, ours, "shown" if is_shown else "not yet")

    return finding


def _share(sides: Sides) -> Judged:
    printed = sorted(row["share_pct"] for row in sides.tiers.values())
    sentence = f"At least {printed[0]}% of a game's raw entropy lies on actions with identical effects."
    paper = f"{printed[0]} to {printed[-1]}%"
    rows = [row for game in sides.tiers if (row := sides.screen(game)) is not None]
    if not rows:
        return Judged(sentence, paper, "", "no data yet")
    ours = ", ".join(f"{row.game} {100 * row.share:.0f}%" for row in rows)
    is_shown = all(100 * row.share >= printed[0] for row in rows)
    return Judged(sentence, paper, ours, "shown" if is_shown else "contradicted")


def _only(rows: Iterator[Any]) -> Any:
    found = list(rows)
    return found[0] if len(found) == 1 else None
