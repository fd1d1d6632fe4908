"""What a reader must know about the data before believing a number: gaps in the grid, copies, missing floors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from gapfloor.analysis.copies import RunCopy, copied_runs
from gapfloor.analysis.episodes import Inputs
from gapfloor.analysis.grouping import StudyEpisodes
from gapfloor.analysis.results import Problem
from gapfloor.plan.model import Plan
from gapfloor.statistics.conventions import Ints
from gapfloor.statistics.distinct import distinct


def find_problems(
    study: StudyEpisodes, inputs: Inputs, plan: Plan, *, copies: tuple[RunCopy, ...] | None = None
) -> tuple[Problem, ...]:
    """Everything that is missing, unbalanced, copied or assumed, cell by cell.

    Args:
        study: the episodes.
        inputs: what was read.
        plan: the plan.
        copies: what `copied_runs` found, where it has been called already.
    """
    problems: list[Problem] = []
    problems += [Problem(kind="assumed", where="the source", what=text) for text in inputs.assumed]
    problems += [
        Problem(kind="missing", where=f"cell {name}", what="the cell is cut or altered and counts as missing")
        for name in inputs.damaged
    ]
    problems += [
        Problem(kind="replay", where=name, what="played again, the episode did not give its recorded return")
        for name in inputs.replay_failures
    ]
    problems += _outside_plan(study, plan)
    for place in study.places():
        problems += _missing_cells(study, place)
        problems += _unbalanced_cells(study, place, plan)
        problems += _floors(study, place, plan)
        problems += _too_few_runs(study, place, plan)
    problems += _shared_levels(study, plan)
    problems += _copies(copied_runs(study) if copies is None else copies)
    return tuple(problems)


def _name(place: tuple[str, str, str], *parts: str) -> str:
    game, mode, budget = place
    return ", ".join(part for part in (game, mode if mode != "easy" else "", budget, *parts) if part)


def _outside_plan(study: StudyEpisodes, plan: Plan) -> Iterator[Problem]:
    """Games that the plan names and the data lack."""
    present = {(game, budget) for game, _, budget in study.places()}
    for budget, games in plan.scope.games.items():
        for game in games:
            if (game, budget) not in present:
                # A study that grows under looks may not have begun with a game.
                has_looks = plan.floor.looks is not None
                yield Problem(
                    kind="too few" if has_looks else "missing",
                    where=f"{game}, {budget}",
                    what="the plan names it; no episodes" + (" yet" if has_looks else ""),
                )
    for game, mode, budget in study.places():
        if not plan.names(game=game, budget=budget) or not plan.scope.games:
            continue
        for rule in plan.scope.rules:
            for level_set in ("train", "test"):
                if not study.runs(game, mode, budget, rule, level_set):
                    where = _name((game, mode, budget), rule, level_set)
                    yield Problem(kind="missing", where=where, what="the plan names it; no episodes")


def _missing_cells(study: StudyEpisodes, place: tuple[str, str, str]) -> Iterator[Problem]:
    """Cells that other runs of the same game and budget have."""
    here = {c: runs for c, runs in study.policies.items() if c[:3] == place}
    everyone = sorted({run for runs in here.values() for run in runs})
    for rule in study.rules:
        level_sets = [ls for ls in study.level_sets if study.runs(*place, rule, ls)]
        draws = sorted(
            {d for ls in level_sets for s in study.runs(*place, rule, ls).values() for d in s.draws}
        )
        for run in everyone if level_sets else ():
            have = {ls: study.runs(*place, rule, ls).get(run) for ls in level_sets}
            if not any(have.values()):
                yield Problem(
                    kind="missing",
                    where=_name(place, str(run), rule),
                    what="no episodes under this rule, which other runs have; it is not in this rule's rows",
                )
                continue
            for level_set, sample in have.items():
                if sample is None:
                    yield Problem(
                        kind="missing",
                        where=_name(place, str(run), rule, level_set),
                        what="the run lacks this half; it is not in this level set's row nor in the gap",
                    )
                    continue
                for draw in draws:
                    if draw not in sample.draws:
                        yield Problem(
                            kind="missing",
                            where=_name(place, str(run), rule, level_set, f"draw {draw}"),
                            what="no episodes on this draw; the run's value is the mean of its other draws",
                        )


def _unbalanced_cells(study: StudyEpisodes, place: tuple[str, str, str], plan: Plan) -> Iterator[Problem]:
    """Draws with another number of episodes than the plan says, or than most have."""
    for rule in study.rules:
        for level_set in study.level_sets:
            runs = study.runs(*place, rule, level_set)
            counts = {(run, draw): n for run, s in runs.items() for draw, n in s.draw_counts().items()}
            if not counts:
                continue
            usual = plan.scope.episodes or Counter(sorted(counts.values())).most_common(1)[0][0]
            for (run, draw), n in counts.items():
                if n != usual:
                    yield Problem(
                        # What the plan fixes is missing if it is not so; what is merely usual is not.
                        kind="missing" if plan.scope.episodes else "unbalanced",
                        where=_name(place, str(run), rule, level_set, f"draw {draw}"),
                        what=f"{n} episodes, where {usual} are {'planned' if plan.scope.episodes else 'usual'}",
                    )
            draws = {draw for _, draw in counts}
            if plan.scope.draws and len(draws) != plan.scope.draws:
                yield Problem(
                    kind="missing",
                    where=_name(place, rule, level_set),
                    what=f"{len(draws)} draws, where the plan says {plan.scope.draws}",
                )


def _floors(study: StudyEpisodes, place: tuple[str, str, str], plan: Plan) -> Iterator[Problem]:
    """Level sets without a floor, and floors on other draws than the policies'."""
    for level_set in study.level_sets:
        samples = [s for rule in study.rules for s in study.runs(*place, rule, level_set).values()]
        if not samples:
            continue
        reference = plan.floor.reference
        floor = study.floor(*place, level_set, reference=reference)
        if floor is None:
            yield Problem(
                kind="no floor",
                where=_name(place, level_set),
                what=f"no episodes with rule '{reference}'; returns on this level set are not compared",
            )
            continue
        draws = {draw for sample in samples for draw in sample.draws}
        if draws != set(floor.draws):
            yield Problem(
                kind="unbalanced",
                where=_name(place, level_set, "floor"),
                what=f"the floor's draws ({', '.join(floor.draws)}) are not the policies' "
                f"({', '.join(sorted(draws))}): they are not on identical levels",
            )
        counts = set(floor.draw_counts().values())
        if len(counts) > 1:
            yield Problem(
                kind="unbalanced",
                where=_name(place, level_set, "floor"),
                what=f"its draws hold different numbers of episodes ({', '.join(map(str, sorted(counts)))})",
            )


def _shared_levels(study: StudyEpisodes, plan: Plan) -> Iterator[Problem]:
    """Levels that were played as training and as held-out levels."""
    if "all" in (plan.scope.train, plan.scope.test):
        return
    for place in study.places():
        for rule in study.rules:
            train, test = (_levels_played(study, place, rule, name) for name in ("train", "test"))
            both = np.intersect1d(train, test, assume_unique=True)
            if both.size:
                yield Problem(
                    kind="levels",
                    where=_name(place, rule),
                    what=f"{both.size} levels were played both as training and as held-out levels, "
                    f"for example {both[0]}",
                )


def _levels_played(study: StudyEpisodes, place: tuple[str, str, str], rule: str, level_set: str) -> Ints:
    levels = [sample.levels for sample in study.runs(*place, rule, level_set).values()]
    return distinct(np.concatenate(levels)) if levels else np.zeros(0, dtype=np.int64)


def _too_few_runs(study: StudyEpisodes, place: tuple[str, str, str], plan: Plan) -> Iterator[Problem]:
    for rule in study.rules:
        for level_set in study.level_sets:
            n = len(study.runs(*place, rule, level_set))
            if n == 1:
                what = "one run: it is described, but not tested, and does not count in its family"
                yield Problem(kind="too few", where=_name(place, rule, level_set), what=what)
            elif 0 < n < plan.least_runs:
                what = f"{n} runs, where a call needs {plan.least_runs}: they are described, but not tested"
                yield Problem(kind="too few", where=_name(place, rule, level_set), what=what)


def _copies(copies: tuple[RunCopy, ...]) -> Iterator[Problem]:
    for copy in copies:
        first = _name((copy.game, copy.mode, copy.first_budget), str(copy.first))
        yield Problem(
            kind="copy",
            where=_name((copy.game, copy.mode, copy.budget), str(copy.run)),
            what=f"every episode equals those of {first}: copies of one checkpoint are one run, not two",
        )
