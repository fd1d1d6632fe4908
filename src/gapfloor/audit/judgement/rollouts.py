"""Training rollouts of one script: which of them are tests, which agent they train, whether one line does both."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gapfloor.audit.judgement.levels import EnvironmentLevels, differ

if TYPE_CHECKING:
    from gapfloor.audit.judgement.paths import Played


def split_tests(
    rollouts: list[Played],
) -> tuple[list[EnvironmentLevels], list[tuple[Played, EnvironmentLevels]]]:
    """The level sets of training, and the rollouts that are tests: on a worker, or during training."""
    train: list[EnvironmentLevels] = []
    tests: list[tuple[Played, EnvironmentLevels]] = []
    for item in rollouts:
        if item.event.fact is not None and item.event.fact.kind == "in-loop":
            tests.extend((item, level) for level in item.sets)
        elif len(item.sets) > 1 and any(level.is_worker_choice for level in item.sets):
            full = [level for level in item.sets if level.kind == "full"]
            others = [level for level in item.sets if level.kind != "full"]
            if full and others:
                tests.extend((item, level) for level in full)
                train.extend(others)
            else:
                train.extend(item.sets)
        else:
            train.extend(item.sets)
    bounded = [level for level in train if level.kind in ("finite", "option")]
    if bounded:
        for item in rollouts:
            if len(item.sets) == 1 and item.sets[0].kind == "full" and item not in [one for one, _ in tests]:
                tests.append((item, item.sets[0]))
                train = [level for level in train if level is not item.sets[0]]
    else:
        for item in rollouts:
            others = [level for other in rollouts if other is not item for level in other.sets]
            is_open = len(item.sets) == 1 and bool(others) and not any(one is item for one, _ in tests)
            if is_open and _discards_reward(item) and all(differ(item.sets[0], level) for level in others):
                tests.append((item, item.sets[0]))
                train = [level for level in train if level is not item.sets[0]]
    return train, tests


def note_different_rules(rollouts: list[Played]) -> None:
    """Mark rollouts by one line of code that follow different rules: one of the calls that lead to it may be a test."""
    for item in rollouts:
        twins = [
            other
            for other in rollouts
            if other.event.node is item.event.node and other.event.script == item.event.script
        ]
        item.has_other_rule = len({other.finding.rule for other in twins}) > 1


def settle_agent(here: list[Played], rollouts: list[Played]) -> None:
    """One kind of agent per script: what its training rollout does outweighs the words of its files."""
    kinds = {item.agent for item in rollouts if item.agent is not None}
    draws = [one.needs_distribution for item in rollouts for one in item.finding.primitives]
    if draws and not any(draws):
        kinds = {"value-based"}
    for item in here:
        if len(kinds) == 1:
            item.agent = next(iter(kinds))


def _discards_reward(item: Played) -> bool:
    parent = item.event.frame.module.parents.get(item.event.node)
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Tuple):
        return False
    elements = parent.targets[0].elts
    return len(elements) > 1 and isinstance(elements[1], ast.Name) and elements[1].id.startswith("_")
