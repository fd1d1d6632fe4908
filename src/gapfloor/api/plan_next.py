"""What a plan with looks says next: which games are finished, and how many runs the others need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.analysis.apply import analyse, resolve_plan
from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.rows import ComparisonRow, Status
from gapfloor.api.analyse import arrow_table
from gapfloor.api.keyword_settings import read_settings, takes
from gapfloor.errors import UsageError
from gapfloor.machine import one_blas_thread
from gapfloor.plan.lock import LockedPlan
from gapfloor.plan.model import Plan
from gapfloor.statistics.conventions import NAN, NO_PAIR, Pair
from gapfloor.statistics.looks import LookAdvice
from gapfloor.text_tables import ReadableResult, TextTable, counted, ends_text, p_text, signed


@dataclass(frozen=True, kw_only=True)
class GameLook:
    """One game at one budget; the defaults are those of a game that has not begun."""

    game: str
    """The game."""
    budget: str
    """Label of the training budget; empty if there is none."""
    runs: int = 0
    """Different runs there are."""
    runs_used: int = 0
    """Runs at the last look that was reached, or at the look of the call; 0 before the first look."""
    delta: float = NAN
    """Mean over the runs used minus the floor."""
    interval: Pair = NO_PAIR
    """Of delta; it excludes zero exactly when the call is above or below."""
    p: float = NAN
    """Adjusted for the looks, and by Holm's procedure for the games."""
    call: str = "not tested"
    """above, below, equivalent, not distinguishable or not tested."""
    not_tested: str = ""
    """Why a look made no call, e.g. because the runs may be skewed; empty otherwise."""
    advice: LookAdvice = "continue"
    """stop: called, stop: all looks used, or continue."""
    more_runs: int
    """Runs to add before the next look."""

    def cells(self) -> list[str]:
        """The game as a line of the table."""
        has_look = self.runs_used > 0
        return [
            self.game,
            self.budget,
            str(self.runs),
            str(self.runs_used) if has_look else "-",
            f"{signed(self.delta)} {ends_text(self.interval)}" if has_look else "-",
            p_text(self.p),
            f"{self.call} ({self.not_tested})" if self.not_tested else self.call,
            f"continue: {counted(self.more_runs, 'more run')}" if self.more_runs else self.advice,
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanNext(ReadableResult):
    """Every game of a plan at its last look."""

    row_names = ("games",)

    looks: tuple[int, ...]
    """The planned numbers of runs."""
    alpha: float
    """Of all games of a family and all looks together."""
    rule: str
    """The rule whose calls decide."""
    level_set: str
    """The level set whose calls decide."""
    status: Status
    """What the calls may be called."""
    reason: str
    """Why they are exploratory, if they are."""
    games: tuple[GameLook, ...]
    """In the order of the tables."""

    @property
    def more_runs(self) -> int:
        """Runs that all games need together before their next look."""
        return sum(game.more_runs for game in self.games)

    @property
    def is_finished(self) -> bool:
        """Whether no game needs another run."""
        return self.more_runs == 0

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON-ready values."""
        return {**super().to_dict(), "more_runs": self.more_runs, "is_finished": self.is_finished}

    def table(self) -> TextTable:
        """One line per game: its last look and what to do next."""
        headings = ["game", "budget", "runs", "look at", "delta [interval]", "adjusted p", "call", "next"]
        return headings, [game.cells() for game in self.games]

    def sentences(self) -> list[str]:
        """What decides, and the runs to train."""
        looks = ", ".join(map(str, self.looks))
        what = (
            f"Looks at {looks} runs, {self.rule} actions on the {self.level_set} levels, alpha {self.alpha:g} over all "
            f"games and looks: {self.status}{f' ({self.reason})' if self.reason else ''}."
        )
        if self.is_finished:
            return [what, "Every game is finished: no more runs."]
        needed = [
            f"{game.game}{f' at {game.budget}' if game.budget else ''} {game.more_runs}"
            for game in self.games
            if game.more_runs
        ]
        return [what, f"Train {counted(self.more_runs, 'more run')}: {', '.join(needed)}."]


@one_blas_thread()
@takes(TableOptions)
def next_runs(
    source: Source,
    plan: str | Path | Plan | LockedPlan = "plan.toml",
    *,
    rule: str | None = None,
    level_set: str = "test",
    **settings: Any,
) -> PlanNext:
    """Say for each game whether to stop, or how many more runs to train.

    The plan names the numbers of runs at which the data are looked at. A game is finished when it has been called, or
    when its last look has been reached. Runs between two looks wait for the next look, and runs beyond the last look
    are not used.

    Args:
        source: A store or a file of episodes, in any form that `analyse` reads.
        plan: The plan, with floor.looks.
        rule: The rule whose calls decide (default: the plan's primary rule).
        level_set: The level set whose calls decide.
        **settings: The fields of `TableOptions`.

    Returns:
        A row per game: its call so far, and the runs to add.

    Command line:
        gapfloor plan next gapfloor-store --plan plan.toml

    Examples:
        Three runs of one game, by a plan that looks after three runs and after six:

        >>> import gapfloor
        >>> import pyarrow as pa
        >>> from dataclasses import replace
        >>> paper = gapfloor.Plan.paper()
        >>> plan = replace(paper, floor=replace(paper.floor, looks=(3, 6), method="recommended"))
        >>> rows = [
        ...     {
        ...         "game": "heist", "agent": agent, "seed": seed, "rule": rule, "level_set": "test",
        ...         "episode_return": mean + 0.5 * seed + 0.2 * episode,
        ...     }
        ...     for agent, rule, mean in (("ppo", "sampled", 3.0), ("random", "uniform", 2.0))
        ...     for seed in range(3)
        ...     for episode in range(8)
        ... ]
        >>> found = gapfloor.Plan.next(pa.Table.from_pylist(rows), plan)
        >>> [(game.game, game.runs, game.more_runs) for game in found.games]
        [('heist', 3, 3)]

    Raises:
        UsageError: the plan has no looks, or the source has no runs of this rule on this level set.
        CheckFailedError: the plan was changed after locking, or one of its stop conditions is met.
    """
    options = read_settings(TableOptions, settings)
    resolved = resolve_plan(plan)
    assert resolved is not None
    content = resolved.plan
    looks = content.floor.looks
    if looks is None:
        raise UsageError(
            f"The plan '{content.name}' has no looks, so there is no next step to tell. Name the numbers of runs at "
            "which you will look before there are data, e.g. floor.looks = [3, 6, 9]."
        )
    rule = rule or content.scope.primary_rule
    results = analyse(read_inputs(arrow_table(source), options=options), resolved)
    rows = [row for row in results.floor_comparisons if (row.rule, row.level_set) == (rule, level_set)]
    if not rows:
        raise UsageError(
            f"There are no runs with the rule '{rule}' on the level set '{level_set}' together with a floor. "
            f"The data have: {', '.join(results.source.rules)} on {', '.join(results.source.level_sets)}."
        )
    games = [_game(row) for row in rows]
    present = {(game.game, game.budget) for game in games}
    games += [
        GameLook(game=game, budget=budget, more_runs=looks[0])
        for budget, named in content.scope.games.items()
        for game in named
        if (game, budget) not in present
    ]
    return PlanNext(
        looks=looks,
        alpha=content.floor.alpha,
        rule=rule,
        level_set=level_set,
        status=rows[0].status,
        reason=rows[0].exploratory_reason,
        games=tuple(games),
    )


def _game(row: ComparisonRow) -> GameLook:
    assert row.look is not None
    return GameLook(
        game=row.game,
        budget=row.budget,
        runs=row.look.runs,
        runs_used=row.look.runs_used,
        delta=row.delta.value,
        interval=row.delta.interval if row.call != "not tested" else NO_PAIR,
        p=row.decision.p_adjusted,
        call=row.call,
        not_tested=row.decision.reason if row.look.runs_used and row.call == "not tested" else "",
        advice=row.look.advice,
        more_runs=row.look.more_runs,
    )
