"""Lookups into an analysis, so that tables, numbers, figures and page ask for a row by name.

Also the choices that make a report data-driven: the order of games and budgets, which budget is the main one,
which rule is printed second, how a game or an agent is written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

from gapfloor.analysis.results import AnalysisResults
from gapfloor.analysis.rows import (
    AgentDifferenceRow,
    AgentRow,
    CallCount,
    ComparisonRow,
    DisagreementRow,
    GapRow,
    ProfileRow,
    Quantity,
    ReturnRow,
    Row,
    RuleDifferenceRow,
    ScoreRow,
    ScreenRow,
    ScreenSummary,
    SensitivityRow,
)
from gapfloor.engines.procgen import PAPER_GAMES
from gapfloor.escape import key_part, safe_key
from gapfloor.report.unique_names import unique_names

AnyRow = TypeVar("AnyRow", bound=Row)
Found = TypeVar("Found")

#: The reference that is the floor; others are stricter.
FLOOR = "uniform"
#: What the results call the mean over games.
SUITE = "mean"
MERGED = "merged"
TRAIN = "train"
TEST = "test"

#: Games whose levels pay 0 or 10 whole: the mean return is a share of completed levels. A property of the games'
#: code, not something to infer from data (a policy that never succeeds would look like any other).
ALL_OR_NOTHING = dict.fromkeys(("coinrun", "heist", "maze", "leaper", "jumper", "ninja"), 10.0)

_AGENT_NAMES = {"impala": "IMPALA", "fpn": "FPN", "impoola": "Impoola"}
_RULE_LETTERS = {"sampled": "s", "greedy": "g", "merged": "m"}
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}


@dataclass(frozen=True, order=True)
class Env:
    """A game in a mode, and the agent where agents are not pooled."""

    game: str
    mode: str
    agent: str = ""


class Findings:
    """An `AnalysisResults` with an index."""

    def __init__(self, results: AnalysisResults, *, same_draws: bool | None = None) -> None:
        self.results = results
        #: Whether the floor was checked to be on the levels that the runs played; None where that is not known.
        self.same_draws = same_draws
        self.plan = results.plan
        self.source = results.source

    @cached_property
    def _places(self) -> dict[tuple[Env, str], _PlaceRows]:
        """The rows by place: a large study asks for them a hundred thousand times."""
        places: dict[tuple[Env, str], _PlaceRows] = {}
        for name in (each.name for each in fields(_PlaceRows)):
            for row in getattr(self.results, name):
                envs = [self.env_of(row)]
                if isinstance(row, AgentDifferenceRow) and not self.plan.pooled:
                    envs.append(Env(row.game, row.mode, row.agent_b))
                for env in envs:
                    rows = places.setdefault((env, row.budget), _PlaceRows())
                    getattr(rows, name).append(row)
        return places

    @property
    def is_one_pool(self) -> bool:
        """Whether a game has one row per rule and level set: one agent, or all of them pooled."""
        return self.plan.pooled or len(self.source.agents) < 2

    @property
    def over_agents(self) -> str:
        """Words of a caption where the runs of several agents are pooled."""
        return ", pooled over agents" if self.plan.pooled and len(self.source.agents) > 1 else ""

    def env_of(self, row: Any) -> Env:
        """The game, mode and, where agents are not pooled, the agent that a row is about."""
        return Env(row.game, row.mode, "" if self.plan.pooled else row.agent or "")

    def _at(self, env: Env, budget: str) -> _PlaceRows:
        return self._places.get((env, budget)) or _PlaceRows()

    @cached_property
    def budgets(self) -> tuple[str, ...]:
        """Budget labels, ascending; those that are not numbers keep their order."""
        present = {row.budget for row in self.results.floor_comparisons}
        present |= {row.budget for row in self.results.gaps}
        ordered = [budget for budget in self.source.budgets if budget in present]
        ordered += sorted(present - set(ordered))
        return tuple(sorted(ordered, key=lambda label: (steps_of(label), ordered.index(label))))

    @cached_property
    def main_budget(self) -> str:
        """The budget with the most games; among equals the smallest."""
        if not self.budgets:
            return ""
        return max(self.budgets, key=lambda budget: (len(self.envs(budget)), -self.budgets.index(budget)))

    @property
    def rules(self) -> tuple[str, ...]:
        """Rules in the data, the primary one first."""
        rules = [rule for rule in self.source.rules if rule not in (FLOOR, self.primary)]
        return (self.primary, *rules)

    @property
    def primary(self) -> str:
        """The plan's primary rule."""
        return self.plan.primary_rule

    @cached_property
    def secondary(self) -> str | None:
        """The rule printed second: greedy where there is one, else the next that is neither primary nor merged."""
        others = [rule for rule in self.rules if rule not in (self.primary, MERGED)]
        return "greedy" if "greedy" in others else (others[0] if others else None)

    @cached_property
    def all_envs(self) -> tuple[Env, ...]:
        """Every game in a mode: the paper's games in its order, then the others in the order of the data."""
        found = {self.env_of(row) for row in (*self.results.floor_comparisons, *self.results.gaps)}
        games_with_runs = {(env.game, env.mode) for env in found}
        found |= {
            Env(row.game, row.mode)
            for row in self.results.floors
            if (row.game, row.mode) not in games_with_runs
        }
        games = [*PAPER_GAMES, *(game for game in self.source.games if game not in PAPER_GAMES)]
        order = {game: at for at, game in enumerate(games)}
        agents = {agent: at for at, agent in enumerate(self.source.agents)}
        return tuple(
            sorted(
                found,
                key=lambda env: (
                    order.get(env.game, len(order)), env.game, env.mode, agents.get(env.agent, -1), env.agent,
                ),
            )
        )  # fmt: skip

    def envs(self, budget: str) -> tuple[Env, ...]:
        """The games that have runs at that budget."""
        found = {
            env
            for (env, at), rows in self._places.items()
            if at == budget and (rows.floor_comparisons or rows.gaps)
        }
        return tuple(env for env in self.all_envs if env in found)

    def budgets_of(self, env: Env) -> tuple[str, ...]:
        """The budgets at which a game has runs."""
        return tuple(budget for budget in self.budgets if env in self.envs(budget))

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
    def _keys(self) -> dict[str, dict[str, str]]:
        agents = [*self.source.agents, *(row.agent or "" for row in self.results.agents)]
        return {
            "game": unique_names(
                [self.name(each) for env in self.all_envs for each in (replace(env, agent=""), env)], key_part
            ),
            "agent": unique_names(agents, lambda agent: key_part(agent.lower())),
            "budget": unique_names(self.budgets, safe_key),
        }

    def game_key(self, env: Env) -> str:
        """A game as part of a number's key."""
        return self._keys["game"][self.name(env)]

    def agent_key(self, agent: str) -> str:
        """An agent as part of a number's key."""
        return self._keys["agent"].get(agent, key_part(agent.lower()))

    def budget_key(self, budget: str) -> str:
        """A budget as part of a number's key; empty where the data have none."""
        return self._keys["budget"].get(budget, safe_key(budget))

    def agents(self, env: Env, budget: str) -> tuple[str, ...]:
        """The agents with runs of that game and budget, in the order differences are taken."""
        found = {row.agent or "" for row in self._at(env, budget).agents}
        ordered = [agent for agent in self.source.agents if agent in found]
        return (*ordered, *sorted(found - set(ordered)))

    def floor(
        self, env: Env, level_set: str, *, budget: str = "", reference: str | None = None
    ) -> ReturnRow | None:
        """A reference (the plan's) on one level set; floors without a budget serve every budget."""
        reference = reference or self.plan.reference
        rows = [
            row
            for row in self.results.floors
            if (row.game, row.mode, row.level_set, row.reference)
            == (env.game, env.mode, level_set, reference)
        ]
        exact = [row for row in rows if row.budget == budget]
        return next(iter(exact or rows), None)

    def comparison(
        self, env: Env, budget: str, rule: str, level_set: str, *, reference: str | None = None
    ) -> ComparisonRow | None:
        """Runs against a reference (the plan's)."""
        reference = reference or self.plan.reference
        for row in self._at(env, budget).floor_comparisons:
            if (row.rule, row.level_set, row.reference) == (rule, level_set, reference):
                return row
        return None

    def sensitivity(self, env: Env, budget: str, rule: str, quantity: str) -> SensitivityRow | None:
        """What other estimators say about a comparison with the floor, or about a gap."""
        for row in self._at(env, budget).sensitivity:
            if (row.rule, row.quantity) == (rule, quantity):
                return row
        return None

    def gap(self, env: Env, budget: str, rule: str) -> GapRow | None:
        """The gap under a rule."""
        return next((row for row in self._at(env, budget).gaps if row.rule == rule), None)

    def pair(
        self, env: Env, budget: str, rule_a: str, rule_b: str, quantity: Quantity
    ) -> RuleDifferenceRow | None:
        """A paired difference of two rules."""
        for row in self._at(env, budget).pairs:
            if (row.rule, row.rule_b, row.quantity) == (rule_a, rule_b, quantity):
                return row
        return None

    def differences(self, env: Env, budget: str, rule: str, quantity: str) -> tuple[AgentDifferenceRow, ...]:
        """Differences between agents; the first pair is the one the plain keys name."""
        return tuple(
            row for row in self._at(env, budget).encoders if (row.rule, row.quantity) == (rule, quantity)
        )

    def agent(self, env: Env, budget: str, rule: str, agent: str) -> AgentRow | None:
        """One agent's returns."""
        for row in self._at(env, budget).agents:
            if (row.rule, row.agent) == (rule, agent):
                return row
        return None

    def screen(self, env: Env, budget: str) -> ScreenRow | None:
        """The entropy screen."""
        return next(iter(self._at(env, budget).screen), None)

    def disagreement(self, env: Env, budget: str, rule: str, level_set: str) -> DisagreementRow | None:
        """How often a rule leaves plain argmax's class."""
        for row in self._at(env, budget).disagreements:
            if (row.rule, row.level_set) == (rule, level_set):
                return row
        return None

    def normalised(self, env: Env | None, budget: str, rule: str, level_set: str) -> ScoreRow | None:
        """A normalised score of a game, or (None) the mean over games; the floor's may carry no budget."""
        game = SUITE if env is None else env.game
        rows = [
            row
            for row in self.results.normalised
            if (row.game, row.rule, row.level_set) == (game, rule, level_set)
            and (env is None or (row.mode, row.agent or env.agent) == (env.mode, env.agent))
        ]
        exact = [row for row in rows if row.budget == budget]
        return _only(exact or [row for row in rows if row.budget == ""])

    def profile(self, budget: str, rule: str, level_set: str) -> ProfileRow | None:
        """The suite's profile; None where agents that are not pooled have several."""
        asked = (budget, rule, level_set)
        return _only([row for row in self.results.profiles if (row.budget, row.rule, row.level_set) == asked])

    def call_counts(self, budget: str, rule: str, level_set: str) -> list[CallCount]:
        """How many games got which call; one entry per agent where agents are not pooled."""
        asked = (budget, rule, level_set)
        return [row for row in self.results.call_counts if (row.budget, row.rule, row.level_set) == asked]

    def screen_summary(self, budget: str) -> ScreenSummary | None:
        """How many games the screen flags."""
        for row in self.results.screen_summaries:
            if row.budget == budget:
                return row
        return None

    def hardest_env(self) -> Env | None:
        """Among the games with the most budgets, the one whose held-out return lies lowest against the floor.

        This is the game whose gap most needs its floor; the paper's is heist. Its two-by-two table gets the plain
        name, the other games' tables carry the game's.
        """
        candidates = []
        for env in self.all_envs:
            rows = [self.comparison(env, budget, self.primary, TEST) for budget in self.budgets_of(env)]
            scores = [row.z for row in rows if row is not None and row.z == row.z]
            if scores and self.gap(env, self.budgets_of(env)[0], self.primary) is not None:
                candidates.append((-len(rows), min(scores), self.all_envs.index(env)))
        return self.all_envs[min(candidates)[2]] if candidates else None


def _only(rows: Sequence[Found]) -> Found | None:
    """The first row, if all are about the same agent."""
    return rows[0] if len({getattr(row, "agent", None) for row in rows}) == 1 else None


def agent_name(agent: str) -> str:
    """How an agent is printed.

    >>> agent_name("impala"), agent_name("my-net")
    ('IMPALA', 'my-net')
    """
    return _AGENT_NAMES.get(agent.lower(), agent)


def rule_title(rule: str) -> str:
    """A rule as a column title.

    >>> rule_title("sampled"), rule_title("epsilon:0.05")
    ('Sampled', 'Epsilon:0.05')
    """
    return rule[:1].upper() + rule[1:]


def rule_letter(rule: str) -> str:
    """A rule in a macro key: s, g and m for the paper's three, else its name."""
    return _RULE_LETTERS.get(rule, rule)


def steps_of(label: str) -> float:
    """A budget label as a number of steps; infinity where it is not a number.

    >>> steps_of("8M"), steps_of("500k"), steps_of("final")
    (8000000.0, 500000.0, inf)
    """
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([kmbg]?)", label.strip().lower())
    return float(match[1]) * _UNITS[match[2]] if match else float("inf")


def slug(text: str) -> str:
    """A label as part of a file name and LaTeX label.

    >>> slug("25M"), slug("<b> x")
    ('25m', 'b-x')
    """
    words = "".join(char if char.isalnum() and char.isascii() else " " for char in text.lower()).split()
    return "-".join(words)


@dataclass(frozen=True)
class _PlaceRows:
    """The rows of one game at one budget; the names are those of `AnalysisResults`."""

    floor_comparisons: list[ComparisonRow] = field(default_factory=list)
    agent_floor_comparisons: list[ComparisonRow] = field(default_factory=list)
    gaps: list[GapRow] = field(default_factory=list)
    pairs: list[RuleDifferenceRow] = field(default_factory=list)
    encoders: list[AgentDifferenceRow] = field(default_factory=list)
    agents: list[AgentRow] = field(default_factory=list)
    screen: list[ScreenRow] = field(default_factory=list)
    disagreements: list[DisagreementRow] = field(default_factory=list)
    sensitivity: list[SensitivityRow] = field(default_factory=list)
