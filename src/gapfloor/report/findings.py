"""Lookups into an analysis, so that tables, numbers, figures and page ask for a row by name.

Also the choices that make a report data-driven: the order of games and budgets, which budget is the main one,
which rule is printed second, how a game or an agent is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gapfloor.analysis.results import AnalysisResults
from gapfloor.analysis.rows import (
    AgentDifferenceRow,
    CallCount,
    ComparisonRow,
    GapRow,
    Quantity,
    ReturnRow,
    RuleDifferenceRow,
    ScoreRow,
    ScreenRow,
)
from gapfloor.engines.procgen import PAPER_GAMES
from gapfloor.escape import key_part, safe_key

#: The reference that is the floor; others are stricter.
FLOOR = "uniform"
#: What the results call the mean over games.
SUITE = "mean"
MERGED = "merged"
TRAIN = "train"
TEST = "test"

_AGENT_NAMES = {"impala": "IMPALA", "fpn": "FPN", "impoola": "Impoola"}
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}
#: The rows of an analysis that belong to a game at a budget.
_ROWS = (
    "floor_comparisons", "gaps", "pairs", "encoders", "agents", "screen", "disagreements", "sensitivity",
)  # fmt: skip


@dataclass(frozen=True, order=True)
class Env:
    """A game in a mode, and the agent where agents are not pooled."""

    game: str
    mode: str
    agent: str = ""


@dataclass(frozen=True, eq=False)
class GameFindings:
    """A game at a budget with the rows of the analysis about it; a table may take one per agent or level set."""

    findings: Findings
    env: Env
    budget: str
    rows: Mapping[str, list[Any]] = field(default_factory=dict)
    agent: str = ""
    level_set: str = TEST

    @property
    def game(self) -> str:
        """The game."""
        return self.env.game

    @property
    def name(self) -> str:
        """How the game is written."""
        return self.findings.name(self.env)

    @property
    def key(self) -> str:
        """Game and budget as the start of a number's key."""
        parts = self.findings.keys["game"][self.name], self.findings.keys["budget"][self.budget]
        return ".".join(filter(None, parts))

    def comparison(self, rule: str | None, level_set: str) -> ComparisonRow | None:
        """Runs against the plan's reference."""
        reference = self.findings.plan.reference
        return self.row("floor_comparisons", rule=rule, level_set=level_set, reference=reference)

    def gap(self, rule: str | None) -> GapRow | None:
        """The gap under a rule."""
        return self.row("gaps", rule=rule)

    def pair(self, rule: str, rule_b: str, quantity: Quantity) -> RuleDifferenceRow | None:
        """A paired difference of two rules."""
        return self.row("pairs", rule=rule, rule_b=rule_b, quantity=quantity)

    def differences(self, rule: str, quantity: str) -> list[AgentDifferenceRow]:
        """Differences between agents; the first pair is the one the plain keys name."""
        return [row for row in self.rows.get("encoders", ()) if (row.rule, row.quantity) == (rule, quantity)]

    @property
    def screen(self) -> ScreenRow | None:
        """The entropy screen."""
        return self.row("screen")

    def floor(self, level_set: str) -> ReturnRow | None:
        """The plan's reference on one level set; floors without a budget serve every budget."""
        wanted = (self.game, self.env.mode, level_set, self.findings.plan.reference)
        found = [
            row
            for row in self.findings.results.floors
            if (row.game, row.mode, row.level_set, row.reference) == wanted
        ]
        return next((row for row in found if row.budget == self.budget), found[0] if found else None)

    def score(self, rule: str, level_set: str) -> ScoreRow | None:
        """A normalised score; the floor's may carry no budget, and a mean over games has no mode of its own."""
        rows = [
            row
            for row in self.findings.results.normalised
            if (row.game, row.rule, row.level_set) == (self.game, rule, level_set)
            and (
                self.game == SUITE
                or (row.mode, row.agent or self.env.agent) == (self.env.mode, self.env.agent)
            )
        ]
        exact = [row for row in rows if row.budget == self.budget] or [
            row for row in rows if row.budget == ""
        ]
        # A mean over games is of one agent, or of all of them pooled.
        return exact[0] if len({row.agent for row in exact}) == 1 else None

    @cached_property
    def scores(self) -> list[ScoreRow]:
        """The normalised scores of the two rules and of the floor, on both level sets."""
        rules = (*self.findings.two_rules, FLOOR)
        found = (self.score(rule, level_set) for rule in rules for level_set in (TRAIN, TEST))
        return [row for row in found if row]

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """The agents with runs, in the order differences are taken."""
        found = {row.agent or "" for row in self.rows.get("agents", ())}
        ordered = [agent for agent in self.findings.source.agents if agent in found]
        return (*ordered, *sorted(found - set(ordered)))

    def row(self, kind: str, **labels: Any) -> Any | None:
        """The first row of a kind (of the analysis' results) with these labels; None where there is none."""
        for row in self.rows.get(kind, ()):
            if all(getattr(row, name) == value for name, value in labels.items()):
                return row
        return None


class Findings:
    """An `AnalysisResults` with an index."""

    def __init__(self, results: AnalysisResults, *, same_draws: bool | None = None) -> None:
        self.results, self.plan, self.source = results, results.plan, results.source
        #: Whether the floor was checked to be on the levels that the runs played; None where that is not known.
        self.same_draws = same_draws
        #: Whether a game has one row per rule and level set: one agent, or all of them pooled.
        self.is_one_pool = self.plan.pooled or len(self.source.agents) < 2
        rules = [rule for rule in self.source.rules if rule != FLOOR]
        planned = self.plan.primary_rule
        #: The plan's primary rule; in data without it, the first rule that they have.
        self.primary = planned if planned in rules or not rules else rules[0]
        #: Rules in the data, the primary one first.
        self.rules = (self.primary, *(rule for rule in rules if rule != self.primary))
        others = [rule for rule in self.rules if rule not in (self.primary, MERGED)]
        #: The rule printed second: greedy where there is one, else the next that is neither primary nor merged.
        self.secondary = "greedy" if "greedy" in others else next(iter(others), None)
        #: The primary rule and the one printed second.
        self.two_rules = [rule for rule in (self.primary, self.secondary) if rule]
        self._places = self._rows_by_place()
        #: Every game in a mode: the paper's games in its order, then the others in the order of the data.
        self.all_envs = self._ordered_envs()
        compared = (*results.floor_comparisons, *results.gaps)
        known = dict.fromkeys((*self.source.budgets, *sorted({row.budget for row in compared})))
        present = [budget for budget in known if any(row.budget == budget for row in compared)]
        #: Budget labels, ascending; those that are not numbers keep their order.
        self.budgets = tuple(sorted(present, key=steps_of))
        #: The budget with the most games; among equals the smallest.
        self.main_budget = max(self.budgets, key=lambda budget: len(self.places(budget)), default="")
        #: The budgets, the main one first.
        self.main_first = sorted(self.budgets, key=lambda budget: budget != self.main_budget)

    def _rows_by_place(self) -> dict[tuple[Env, str], GameFindings]:
        """The rows by place: a large study asks for them a hundred thousand times."""
        places: dict[tuple[Env, str], GameFindings] = {}
        for kind in _ROWS:
            for row in getattr(self.results, kind):
                envs = [self.env_of(row)]
                if isinstance(row, AgentDifferenceRow) and not self.plan.pooled:
                    envs.append(Env(row.game, row.mode, row.agent_b))
                for key in ((env, row.budget) for env in envs):
                    if key not in places:
                        places[key] = GameFindings(self, *key, rows={kind: [] for kind in _ROWS})
                    places[key].rows[kind].append(row)
        return places

    def env_of(self, row: Any) -> Env:
        """The game, mode and, where agents are not pooled, the agent that a row is about."""
        return Env(row.game, row.mode, "" if self.plan.pooled else row.agent or "")

    def place(self, env: Env, budget: str) -> GameFindings:
        """A game at a budget, with or without runs."""
        return self._places.get((env, budget)) or GameFindings(self, env, budget)

    def places(self, budget: str) -> tuple[GameFindings, ...]:
        """The games that have runs at that budget, in order."""
        found = (self._places.get((env, budget)) for env in self.all_envs)
        return tuple(
            place for place in found if place and (place.rows["floor_comparisons"] or place.rows["gaps"])
        )

    def _ordered_envs(self) -> tuple[Env, ...]:
        found = {self.env_of(row) for row in (*self.results.floor_comparisons, *self.results.gaps)}
        with_runs = {(env.game, env.mode) for env in found}
        floors = {Env(row.game, row.mode) for row in self.results.floors}
        found |= {env for env in floors if (env.game, env.mode) not in with_runs}
        games = [*PAPER_GAMES, *(game for game in self.source.games if game not in PAPER_GAMES)]
        order = {game: at for at, game in enumerate(games)}
        agents = {agent: at for at, agent in enumerate(self.source.agents)}
        places = {env: (order.get(env.game, len(order)), agents.get(env.agent, -1)) for env in found}
        return tuple(
            sorted(found, key=lambda env: (places[env][0], env.game, env.mode, places[env][1], env.agent))
        )

    def order_of(self, game: str, agent: str) -> tuple[tuple[int, str], tuple[int, str]]:
        """Where a game and an agent, however it is spelt, stand in a report; those without results come last."""
        games, agents = [env.game for env in self.all_envs], [name.lower() for name in self.source.agents]
        at_game = games.index(game) if game in games else len(games)
        at_agent = agents.index(agent.lower()) if agent.lower() in agents else len(agents)
        return (at_game, game), (at_agent, agent)

    def places_of(self, env: Env) -> list[GameFindings]:
        """A game at each of its budgets."""
        return [place for budget in self.budgets for place in self.places(budget) if place.env == env]

    def name(self, env: Env) -> str:
        """How a game is written: with its mode or agent only where there are several."""
        modes = {other.mode for other in self.all_envs if other.game == env.game}
        name = f"{env.game} {env.mode}" if len(modes) > 1 else env.game
        return name if self.is_one_pool or not env.agent else f"{name} ({agent_name(env.agent)})"

    @cached_property
    def _slugs(self) -> dict[str, str]:
        games = [self.name(env) for env in self.all_envs]
        # Budgets first: a game must not change the name of a table that the paper knows.
        return {**unique_names(games, slug), **unique_names(self.budgets, slug)}

    def slug(self, label: str) -> str:
        """A budget, or a game's name, as part of a file name and LaTeX label; different labels stay different."""
        return self._slugs.get(label, slug(label))

    @cached_property
    def keys(self) -> dict[str, dict[str, str]]:
        """Games' names, agents and budgets as parts of a number's key; empty for data without budgets."""
        agents = [*self.source.agents, *(row.agent or "" for row in self.results.agents)]
        return {
            "game": unique_names(
                [self.name(each) for env in self.all_envs for each in (replace(env, agent=""), env)], key_part
            ),
            "agent": unique_names(agents, lambda agent: key_part(agent.lower())),
            "budget": unique_names(self.budgets, safe_key),
        }

    def call_counts(self, budget: str, rule: str, level_set: str) -> list[CallCount]:
        """How many games got which call; one entry per agent where agents are not pooled."""
        asked = (budget, rule, level_set)
        return [row for row in self.results.call_counts if (row.budget, row.rule, row.level_set) == asked]

    def hardest_env(self) -> Env | None:
        """Among the games with the most budgets, the one whose held-out return lies lowest against the floor.

        This is the game whose gap most needs its floor; the paper's is heist. Its two-by-two table gets the plain
        name, the other games' tables carry the game's.
        """
        candidates = []
        for at, env in enumerate(self.all_envs):
            places = self.places_of(env)
            rows = [place.comparison(self.primary, TEST) for place in places]
            scores = [row.z for row in rows if row is not None and row.z == row.z]
            if scores and places[0].gap(self.primary) is not None:
                candidates.append((-len(rows), min(scores), at))
        return self.all_envs[min(candidates)[2]] if candidates else None


def agent_name(agent: str) -> str:
    """How an agent is printed.

    >>> agent_name("impala"), agent_name("my-net")
    ('IMPALA', 'my-net')
    """
    return _AGENT_NAMES.get(agent.lower(), agent)


def at_budget(budget: str) -> str:
    """The budget as the end of a phrase, or nothing where the data have no budgets."""
    return f" at {budget}" if budget else ""


def steps_of(label: str) -> float:
    """A budget label as a number of steps; infinity where it is not a number.

    >>> steps_of("8M"), steps_of("500k"), steps_of("final")
    (8000000.0, 500000.0, inf)
    """
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([kmbg]?)", label.strip().lower())
    return float(match[1]) * _UNITS[match[2]] if match else float("inf")


def steps_text(steps: float) -> str:
    """A number of environment steps in short.

    >>> steps_text(2_500_000), steps_text(100_000), steps_text(512)
    ('2.5M', '100k', '512')
    """
    if steps >= 1e6:
        return f"{steps / 1e6:g}M"
    return f"{steps / 1e3:g}k" if steps >= 1e3 else f"{steps:g}"


def slug(text: str) -> str:
    """A label as part of a file name and LaTeX label.

    >>> slug("25M"), slug("<b> x")
    ('25m', 'b-x')
    """
    words = "".join(char if char.isalnum() and char.isascii() else " " for char in text.lower()).split()
    return "-".join(words)


def unique_names(labels: Iterable[str], spell: Callable[[str], str]) -> dict[str, str]:
    """Each label as `spell` writes it; a later label whose spelling is taken gets a number.

    A label without a character that can be written is called "other".

    >>> unique_names(["8M", "25M", "8m"], str.lower)
    {'8M': '8m', '25M': '25m', '8m': '8m-2'}
    """
    names: dict[str, str] = {}
    for label in dict.fromkeys(labels):
        plain = spell(label) or ("other" if label else "")
        name, number = plain, 2
        while name in names.values():
            name, number = f"{plain}-{number}", number + 1
        names[label] = name
    return names
