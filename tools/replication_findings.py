"""Every testable sentence of the paper about agents, and what four sets of agents say about it.

A finding is a sentence, what the paper prints, and a function that looks at the results of `gapfloor analyse` and says
what it sees and whether that is what the paper says. The same function looks at our agents of 100k steps, our miner
runs of 1M steps, other people's agents of 25M steps and networks that were never trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.analysis.results import AnalysisResults

Verdict = Literal["shown", "not yet", "contradicted", "not tested"]
State = Literal["shown", "shown, and by untrained networks", "mixed", "not yet", "contradicted", "no data"]
#: The columns, and what is compared with them.
COLUMNS = ("100k", "1M", "25M, public", "untrained")
ALPHA = 0.05
_UNDECIDED = ("not distinguishable", "equivalent")
_WORDS = {"n.d.": "not distinguishable", "equiv.": "equivalent", "interm.": "intermediate"}
_SHORT = {"not distinguishable": "n.d.", "equivalent": "equiv."}


@dataclass(frozen=True)
class Seen:
    """What one set of agents shows."""

    text: str
    verdict: Verdict


@dataclass(frozen=True)
class Finding:
    """A sentence of the paper with its printed values."""

    sentence: str
    paper: str
    look: Callable[[Evidence], Seen | None]
    """None where these agents have no data about it."""
    columns: tuple[str, ...] = COLUMNS


@dataclass(frozen=True)
class Judged:
    """A finding with what each set of agents shows, by column."""

    finding: Finding
    seen: dict[str, Seen | None]

    @property
    def state(self) -> State:
        """What the trained agents say together; what is not tested has no vote."""
        seen = (self.seen.get(name) for name in COLUMNS[:3])
        verdicts = {each.verdict for each in seen if each is not None}
        if {"shown", "contradicted"} <= verdicts:
            return "mixed"
        if "contradicted" in verdicts:
            return "contradicted"
        if "shown" in verdicts:
            untrained = self.seen.get("untrained")
            is_shared = untrained is not None and untrained.verdict == "shown"
            return "shown, and by untrained networks" if is_shared else "shown"
        return "not yet" if "not yet" in verdicts else "no data"


class Evidence:
    """The results of one set of agents, by game."""

    def __init__(self, results: AnalysisResults) -> None:
        self.results = results
        self.games = results.source.games

    def comparison(self, game: str, rule: str, level_set: str = "test") -> Any:
        """The comparison with the floor; None where it was not measured."""
        return _pooled(self.results.floor_comparisons, game=game, rule=rule, level_set=level_set)

    def gap(self, game: str, rule: str) -> Any:
        """The gap of a game under a rule."""
        return _pooled(self.results.gaps, game=game, rule=rule)

    def pair(self, game: str, rule_a: str, rule_b: str, quantity: str) -> Any:
        """The difference of two rules, paired over runs."""
        return _only(self.results.pairs, game=game, rule=rule_a, rule_b=rule_b, quantity=quantity)

    def screen(self, game: str) -> Any:
        """The entropy screen of a game, all agents together."""
        return _pooled(self.results.screen, game=game)

    def screens(self, games: Sequence[str]) -> list[Any]:
        """The screens of those games that have one."""
        return [row for game in games if (row := self.screen(game)) is not None]


def judge(paper: dict[str, Any], evidence: dict[str, Evidence]) -> list[Judged]:
    """Every finding, in the order of the paper; `evidence` by column."""
    return [
        Judged(
            finding,
            {
                name: finding.look(each) if name in finding.columns else None
                for name, each in evidence.items()
            },
        )
        for finding in findings(paper)
    ]


def findings(paper: dict[str, Any]) -> Iterator[Finding]:
    """All findings."""
    unmask = {row["env"]: row for row in paper["unmask"]}
    long = {(row["env"], row["levels"]): row for row in paper["floor_calls"] if row["budget"] == "25M"}
    both = {(row["env"], row["levels"]): row for row in paper["floor_calls"] if row["budget"] == "8M"}
    tiers = {row["env"]: row for row in paper["tiers"]}
    gaps = {row["env"]: row for row in paper["gaps_8m"]}
    merged = {row["env"]: row for row in paper["merged_argmax"]}

    for row in unmask.values():
        for rule in ("sampled", "greedy"):
            yield _call("In", row, rule, "test")
    for rule in ("sampled", "greedy"):
        yield _call("In", both["heist", "train"], rule, "train")
    yield _every_run(
        "Every miner run is above the floor when sampled.", "6 of 6", "miner", "sampled", is_above=True
    )
    yield _every_run(
        "Every miner run is below the floor by argmax.", "6 of 6", "miner", "greedy", is_above=False
    )
    yield _below_by_argmax(unmask)
    yield _above_when_sampled(unmask)

    for game, sign in (("miner", 1), ("coinrun", 1), ("heist", 1), ("fruitbot", -1), ("bossfight", -1),
                       ("starpilot", 0), ("bigfish", 0), ("dodgeball", 0)):  # fmt: skip
        words = {1: "sampling scores more than argmax", -1: "argmax scores more than sampling",
                 0: "the rules are within noise"}[sign]  # fmt: skip
        effect = _effect(unmask[game])
        yield Finding(
            f"In {game}, {words} (held-out).",
            f"{effect:+.2f}",
            _pair(game, "sampled", "greedy", "test", sign),
        )
    yield _no_fixed_sign(unmask)

    for game in ("miner", "heist", "coinrun"):
        printed = {"ret": merged[game]["merged"], "call": merged[game]["merged_call"]}
        yield _call("In", {**unmask[game], "merged": printed}, "merged", "test")
    for game in ("coinrun", "starpilot"):
        yield Finding(
            f"In {game}, merged argmax is lower than argmax.", f"{merged[game]['merged_minus_greedy']:+.2f}",
            _pair(game, "merged", "greedy", "test", -1),
        )  # fmt: skip
    yield _merged_never_helps(merged)

    for game in ("heist", "miner"):
        printed = f"{gaps[game]['sampled']['gap']['est']:+.2f} and {gaps[game]['greedy']['gap']['est']:+.2f}"
        yield Finding(
            f"In {game}, the sampled gap is larger than the greedy gap.", printed, _gap_pair(game, 1)
        )
    for game in ("starpilot", "fruitbot", "bigfish", "coinrun", "dodgeball", "bossfight"):
        printed = f"{gaps[game]['sampled']['gap']['est']:+.2f} and {gaps[game]['greedy']['gap']['est']:+.2f}"
        yield Finding(f"In {game}, the gaps of the two rules are within noise.", printed, _gap_pair(game, 0))
    for game, row in gaps.items():
        is_gap = not isinstance(row["sampled"]["holm_p"], float) or row["sampled"]["holm_p"] < ALPHA
        words = "larger than zero" if is_gap else "not distinguishable from zero"
        printed = f"{row['sampled']['gap']['est']:+.2f}"
        yield Finding(f"The sampled gap of {game} is {words}.", printed, _gap(game, is_gap))

    for game, row in tiers.items():
        yield _tier(
            f"By raw entropy, {game} is {_full(row['raw_tier'])}.", row["H"], game, _full(row["raw_tier"])
        )
    yield _agrees("Starpilot has low entropy and is above the floor.", tiers["starpilot"], "low", ("above",))
    yield _agrees(
        "Heist has high entropy and is not above the floor.", tiers["heist"], "high", (*_UNDECIDED, "below")
    )
    for game in ("miner", "fruitbot"):
        yield _flagged(
            f"Raw entropy flags {game}, although it is above the floor when sampled.", tiers[game], game
        )
    yield _share(tiers)
    yield _merged_tiers(
        "coinrun and heist remain outside the low tier after merging state by state", tiers, "state"
    )
    yield _merged_tiers("dodgeball, bossfight and heist remain so with one partition per game", tiers, "game")
    for game, tier in (("starpilot", "low"), ("heist", "high")):
        yield _swept(f"{game.capitalize()} is {tier} at every lower cut from 1.8 to 2.2 nats.", game, tier)
    yield _greedy_states("bigfish", tiers["bigfish"]["H"], paper)
    yield _greedy_states("miner", tiers["miner"]["H"], paper)
    yield _actions("fruitbot", 4)
    yield _actions("starpilot", 11)
    yield _crossings_are_flagged()

    only = ("25M, public", "untrained")
    for rule in ("sampled", "greedy"):
        for levels in ("train", "test"):
            yield _call("At 25M, in", long["heist", levels], rule, levels, only)
    yield Finding("At 25M, the sampled gap of heist is larger than its greedy gap.", "+3.94 and +2.62",
                  _gap_pair("heist", 1), only)  # fmt: skip
    yield Finding(
        "At 25M, starpilot's sampled gap is larger than zero.", "+2.11", _gap("starpilot", True), only
    )
    for game, entropy, tier in (("starpilot", 1.583, "low"), ("heist", 2.455, "high")):
        yield _tier(f"At 25M, {game} is {tier} by raw entropy.", entropy, game, tier, only)

    for rule, printed in (("greedy", "+1.37"), ("sampled", "+1.06")):
        yield _encoders(
            f"IMPALA's gap in heist exceeds FPN's under {rule} actions (the paper: at 25M).", printed, rule
        )
    yield _floor_below_published(paper)


def _call(start: str, printed: Any, rule: str, level_set: str, columns: tuple[str, ...] = COLUMNS) -> Finding:
    game, theirs = printed["env"], _full(printed[rule]["call"])
    who = {"sampled": "the sampled policy", "greedy": "argmax", "merged": "merged argmax"}[rule]
    what = {"above": "is above the floor", "below": "is below the floor"}
    where = {"train": "training", "test": "held-out"}[level_set]
    call = what.get(theirs, "cannot be distinguished from the floor")
    sentence = f"{start} {game}, {who} {call} on {where} levels."
    paper = f"{printed[rule]['ret']['mean']:.2f} against {printed['floor']['mean']:.2f}"

    def look(evidence: Evidence) -> Seen | None:
        row = evidence.comparison(game, rule, level_set)
        if row is None:
            return None
        text = f"{row.mean:.2f} against {row.floor:.2f}: {_SHORT.get(row.call, row.call)}"
        return Seen(text, same_call(theirs, row.call))

    return Finding(sentence, paper, look, columns)


def same_call(theirs: str, ours: str) -> Verdict:
    """A floor that is missed is not yet shown; the other side of it, or a side where they saw none, contradicts."""
    if ours == "not tested":
        return "not tested"
    if theirs == ours or (theirs in _UNDECIDED and ours in _UNDECIDED):
        return "shown"
    return "not yet" if ours in _UNDECIDED else "contradicted"


def signed(estimate: float, p: float, sign: int) -> Verdict:
    """A difference counts only where its test does; sign 0: the paper saw none."""
    if p != p:
        return "not tested"
    if not p < ALPHA:
        return "not yet" if sign else "shown"
    return "shown" if estimate * sign > 0 else "contradicted"


def _pair(game: str, rule_a: str, rule_b: str, quantity: str, sign: int) -> Callable[[Evidence], Seen | None]:
    def look(evidence: Evidence) -> Seen | None:
        row = evidence.pair(game, rule_a, rule_b, quantity)
        if row is None:
            return None
        return Seen(_difference(row), signed(row.difference.value, row.difference.p, sign))

    return look


def _gap_pair(game: str, sign: int) -> Callable[[Evidence], Seen | None]:
    def look(evidence: Evidence) -> Seen | None:
        row, gaps = (
            evidence.pair(game, "sampled", "greedy", "gap"),
            [evidence.gap(game, r) for r in ("sampled", "greedy")],
        )
        if row is None or None in gaps:
            return None
        text = f"{gaps[0].gap:+.2f} and {gaps[1].gap:+.2f} ({_p(row.difference.p)})"
        return Seen(text, signed(row.difference.value, row.difference.p, sign))

    return look


def _gap(game: str, is_gap: bool) -> Callable[[Evidence], Seen | None]:
    def look(evidence: Evidence) -> Seen | None:
        row = evidence.gap(game, "sampled")
        if row is None:
            return None
        call, p = row.decision.call, row.decision.p_adjusted
        text = f"{row.gap:+.2f}, floor {row.floor_gap:+.2f}: {_SHORT.get(call, call)}"
        if p != p:
            return Seen(text, "not tested")
        if not p < ALPHA:
            return Seen(text, "not yet" if is_gap else "shown")
        return Seen(text, "shown" if is_gap and row.gap > 0 else "contradicted")

    return look


def _every_run(sentence: str, printed: str, game: str, rule: str, *, is_above: bool) -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        row = evidence.comparison(game, rule)
        if row is None:
            return None
        count = row.runs_above if is_above else row.n - row.runs_above
        verdict: Verdict = "not tested" if row.n < 3 else "shown" if count == row.n else "not yet"
        return Seen(f"{count} of {row.n}", verdict)

    return Finding(sentence, printed, look)


def _below_by_argmax(unmask: dict[str, Any]) -> Finding:
    theirs = [game for game, row in unmask.items() if row["greedy"]["call"] == "below"]

    def look(evidence: Evidence) -> Seen | None:
        rows = [row for game in unmask if (row := evidence.comparison(game, "greedy")) is not None]
        if len(rows) < 3:
            return None
        ours = [row.game for row in rows if row.call == "below"]
        names = {row.game for row in rows}
        verdict: Verdict = "shown" if set(ours) == set(theirs) & names else "contradicted"
        return Seen(f"{_list(ours)} (of {len(rows)} games)", verdict)

    return Finding(
        "Argmax puts these games, and no others, below the floor.", f"{_list(theirs)} (of 8)", look
    )


def _above_when_sampled(unmask: dict[str, Any]) -> Finding:
    theirs = [game for game, row in unmask.items() if row["sampled"]["call"] == "above"]

    def look(evidence: Evidence) -> Seen | None:
        rows = [row for game in unmask if (row := evidence.comparison(game, "sampled")) is not None]
        if len(rows) < 3:
            return None
        ours = [row.game for row in rows if row.call == "above"]
        wanted = set(theirs) & {row.game for row in rows}
        verdict: Verdict = (
            "shown" if set(ours) == wanted else "contradicted" if set(ours) - wanted else "not yet"
        )
        return Seen(f"{_list(ours)} (of {len(rows)} games)", verdict)

    return Finding(
        "Sampled, these games, and no others, are above the floor.", f"{_list(theirs)} (of 8)", look
    )


def _no_fixed_sign(unmask: dict[str, Any]) -> Finding:
    effects = {game: _effect(row) for game, row in unmask.items()}
    lowest, highest = min(effects, key=effects.__getitem__), max(effects, key=effects.__getitem__)

    def look(evidence: Evidence) -> Seen | None:
        rows = [
            row for game in unmask if (row := evidence.pair(game, "sampled", "greedy", "test")) is not None
        ]
        if len(rows) < 2:
            return None
        signs = {row.difference.value > 0 for row in rows if row.difference.p < ALPHA}
        text = ", ".join(f"{row.game} {_difference(row)}" for row in rows)
        return Seen(text, "shown" if len(signs) == 2 else "not yet")

    sentence = (
        "The effect of the rule has no fixed sign: sampling scores more in some games and less in others."
    )
    return Finding(sentence, f"{lowest} {effects[lowest]:+.2f}, {highest} {effects[highest]:+.2f}", look)


def _merged_never_helps(merged: dict[str, Any]) -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        rows = [
            row for game in merged if (row := evidence.pair(game, "merged", "greedy", "test")) is not None
        ]
        if len(rows) < 3:
            return None
        higher = [row.game for row in rows if row.difference.p < ALPHA and row.difference.value > 0]
        text = f"higher in {_list(higher)} (of {len(rows)} games)"
        return Seen(text, "contradicted" if higher else "shown")

    return Finding("Merged argmax never scores significantly more than argmax.", "in none of 8 games", look)


def _tier(sentence: str, printed: float, game: str, tier: str, columns: tuple[str, ...] = COLUMNS) -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        row = evidence.screen(game)
        if row is None:
            return None
        verdict: Verdict = "not tested" if row.n < 3 else "shown" if row.tier == tier else "contradicted"
        return Seen(f"{row.entropy:.2f} nats: {row.tier}", verdict)

    return Finding(sentence, f"{printed:.2f} nats", look, columns)


def _agrees(sentence: str, printed: Any, tier: str, calls: tuple[str, ...]) -> Finding:
    game = printed["env"]

    def look(evidence: Evidence) -> Seen | None:
        screen, row = evidence.screen(game), evidence.comparison(game, "sampled")
        if screen is None or row is None:
            return None
        is_shown = screen.tier == tier and row.call in calls
        return Seen(
            f"{screen.tier}; {_SHORT.get(row.call, row.call)}", "shown" if is_shown else "contradicted"
        )

    return Finding(sentence, f"{_full(printed['raw_tier'])}; {printed['above_floor']}", look)


def _flagged(sentence: str, printed: Any, game: str) -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        screen, row = evidence.screen(game), evidence.comparison(game, "sampled")
        if screen is None or row is None:
            return None
        text = f"{screen.entropy:.2f} nats, {screen.tier}; {_SHORT.get(row.call, row.call)}"
        if row.call == "not tested":
            return Seen(text, "not tested")
        return Seen(text, "shown" if screen.tier != "low" and row.call == "above" else "not yet")

    return Finding(
        sentence, f"{printed['H']:.2f} nats, {_full(printed['raw_tier'])}; {printed['above_floor']}", look
    )


def _share(tiers: dict[str, Any]) -> Finding:
    printed = sorted(row["share_pct"] for row in tiers.values())

    def look(evidence: Evidence) -> Seen | None:
        rows = [row for row in evidence.screens(list(tiers)) if row.share == row.share]
        if not rows:
            return None
        text = ", ".join(f"{row.game} {100 * row.share:.0f}%" for row in rows)
        is_shown = all(round(100 * row.share) >= printed[0] for row in rows)
        return Seen(text, "shown" if is_shown else "contradicted")

    sentence = f"At least {printed[0]}% of each game's raw entropy lies on actions with identical effects."
    return Finding(sentence, f"{printed[0]} to {printed[-1]}%", look)


def _merged_tiers(words: str, tiers: dict[str, Any], kind: str) -> Finding:
    theirs = {game for game, row in tiers.items() if _full(row[f"merged_tier_{kind}"]) != "low"}

    def look(evidence: Evidence) -> Seen | None:
        rows = [
            row for row in evidence.screens(list(tiers)) if getattr(row, f"merged_tier_{kind}") is not None
        ]
        if len(rows) < 3:
            return None
        ours = {row.game for row in rows if getattr(row, f"merged_tier_{kind}") != "low"}
        verdict: Verdict = "shown" if ours == theirs & {row.game for row in rows} else "contradicted"
        return Seen(f"{_list(sorted(ours))} (of {len(rows)} games)", verdict)

    return Finding(f"Of all games, only {words}.", f"{_list(sorted(theirs))} (of 8)", look)


def _swept(sentence: str, game: str, tier: str) -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        row = evidence.screen(game)
        if row is None:
            return None
        tiers = [each.raw for each in row.sweep]
        return Seen(", ".join(dict.fromkeys(tiers)), "shown" if set(tiers) == {tier} else "contradicted")

    return Finding(sentence, tier, look)


def _greedy_states(game: str, sampled: float, paper: dict[str, Any]) -> Finding:
    rows = (row for row in paper["merged_entropy"] if row["env"] == game and row["budget"] == "8M")
    greedy = next(rows)["greedy_states_H"]
    words = "higher" if greedy > sampled else "lower"

    def look(evidence: Evidence) -> Seen | None:
        row = evidence.screen(game)
        if row is None or row.entropy_greedy != row.entropy_greedy:
            return None
        verdict: Verdict = (
            "shown" if (row.entropy_greedy > row.entropy) == (greedy > sampled) else "contradicted"
        )
        return Seen(f"{row.entropy_greedy:.2f} and {row.entropy:.2f}", "not tested" if row.n < 3 else verdict)

    sentence = f"In {game}, entropy on the states of argmax is {words} than on those of sampling."
    return Finding(sentence, f"{greedy:.2f} and {sampled:.2f}", look)


def _actions(game: str, count: int) -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        row = evidence.screen(game)
        if row is None or row.k is None:
            return None
        return Seen(str(row.k), "shown" if row.k == count else "contradicted")

    return Finding(
        f"{game.capitalize()} has {count} distinct actions (this does not depend on agents).",
        str(count),
        look,
    )


def _crossings_are_flagged() -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        rows = [
            row
            for row in evidence.results.floor_comparisons
            if (row.rule, row.level_set) == ("greedy", "test")
        ]
        screens = {row.game: row for row in evidence.screens(evidence.games)}
        crossed = [
            row.game
            for row in rows
            if row.call not in ("above", "not tested") and row.game in screens
            and getattr(evidence.comparison(row.game, "sampled"), "call", "") != row.call
        ]  # fmt: skip
        if len(rows) < 3 or not crossed:
            return None
        low = [game for game in crossed if screens[game].tier == "low"]
        return Seen(f"{_list(crossed)}; low: {_list(low)}", "contradicted" if low else "shown")

    sentence = "Where only argmax is not above the floor, the screen flags the game."
    return Finding(sentence, "coinrun, miner, heist", look)


def _encoders(sentence: str, printed: str, rule: str) -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        row = _only(evidence.results.encoders, game="heist", rule=rule, quantity="gap")
        if row is None or (row.agent, row.agent_b) != ("impala", "fpn"):
            return None
        return Seen(_difference(row), signed(row.difference.value, row.difference.p, 1))

    return Finding(sentence, printed, look)


def _floor_below_published(paper: dict[str, Any]) -> Finding:
    def look(evidence: Evidence) -> Seen | None:
        rows = [
            row
            for row in evidence.results.normalised
            if (row.rule, row.level_set) == ("uniform", "test") and row.game != "mean"
        ]
        if len(rows) < 3:
            return None
        below = [row.game for row in rows if row.score < 0]
        verdict: Verdict = "shown" if len(below) > len(rows) / 2 else "contradicted"
        return Seen(f"{len(below)} of {len(rows)} games", verdict)

    rows = [row for row in paper["normalised"]["rows"] if row["budget"] == "8M"]
    below = sum(row["floor_test"] < 0 or str(row["floor_test"]).startswith("-") for row in rows)
    sentence = (
        "The floor lies below the published lower constant in most games (this does not depend on agents)."
    )
    return Finding(sentence, f"{below} of {len(rows)} games", look, COLUMNS[:3])


def _effect(row: Any) -> float:
    return float(row["sampled"]["ret"]["mean"] - row["greedy"]["ret"]["mean"])


def _difference(row: Any) -> str:
    p = row.difference.p
    return f"{row.difference.value:+.2f}" + (f" ({_p(p)})" if p == p else "")


def _p(value: float) -> str:
    if value != value:
        return "one run"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _full(word: str) -> str:
    return _WORDS.get(word, word)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _pooled(rows: Sequence[Any], **wanted: object) -> Any:
    """The row of all agents together, or that of the only agent."""
    return _only(rows, agent=None, **wanted) or _only(rows, **wanted)


def _only(rows: Sequence[Any], **wanted: object) -> Any:
    found = [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]
    return found[0] if len(found) == 1 else None
