"""Whether an evaluation plays what training played: the same object, the same factory, a dataset, the same numbers."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.values import Environment, Frame, identity
from gapfloor.audit.judgement.levels import (
    EnvironmentLevels,
    comes_from_one_factory,
    differ,
    is_made_alike,
    level_sets,
)
from gapfloor.audit.judgement.origins import follow_name
from gapfloor.audit.judgement.selections import compare_choices
from gapfloor.audit.reading.index import last_name, own_nodes

if TYPE_CHECKING:
    from gapfloor.audit.judgement.paths import Played

_PARAMETERS = re.compile(r"params$", re.IGNORECASE)


def plays_the_same(item: Played, other: Played) -> bool:
    """Whether two steps play one and the same environment: one object, or two made in the same words."""
    if item.event.node is other.event.node:
        ours, theirs = item.event.frame.receiver, other.event.frame.receiver
        if ours is not None and theirs is not None and ours.value is theirs.value:
            return True
    pairs = [(one, two) for one in item.environments for two in other.environments]
    return bool(pairs) and all(is_made_alike(one, two) for one, two in pairs)


def by_choice(item: Played, rollouts: list[Played], otherwise: bool | None) -> bool | None:
    """Held out or not where levels are chosen episode by episode; the constructor's answer where they are not."""
    trained = [other.choice for other in rollouts if other.choice is not None]
    levels = [choice for choice in trained if not choice.is_seed or choice.is_several]
    is_chosen = item.choice is not None and (not item.choice.is_seed or bool(levels))
    if not is_chosen and not levels:
        return otherwise
    if item.choice is None or not levels or len(levels) < len(rollouts):
        return None
    answers = {compare_choices(item.choice, choice) for choice in levels}
    return answers.pop() if len(answers) == 1 else None


def has_other_parameters(evaluator: Evaluator, item: Played, rollouts: list[Played]) -> bool:
    """Whether an environment of JAX is stepped with parameters that are not those of training, or may not be.

    There the object has no state: `step(rng, state, action, params)` plays the levels that `params` describe.
    """
    ours = _parameters(evaluator, item)
    return any(_parameters(evaluator, other) != ours for other in rollouts)


def _parameters(evaluator: Evaluator, item: Played) -> tuple[object, ...]:
    """Where the parameters that a step is given come from."""
    call = item.event.node
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    return tuple(
        _source(evaluator, node, item.event.frame) for node in given if _PARAMETERS.search(last_name(node))
    )


def _source(evaluator: Evaluator, node: ast.AST, frame: Frame) -> object:
    """The statements that give a name its value; else the expression that it stands for."""
    meant, _, stated = follow_name(evaluator, node, frame)
    return tuple(id(one.statement) for one in stated) or ast.dump(meant)


def is_served_alike(evaluator: Evaluator, item: Played, served: list[Environment]) -> bool:
    """Whether the environments that workers step for training come from the same factory as these."""
    pairs = [(one, two) for one in item.environments for two in served]
    return bool(pairs) and all(comes_from_one_factory(evaluator, one, two) for one, two in pairs)


def is_source_of_data(evaluator: Evaluator, item: Played, level: EnvironmentLevels | None) -> bool:
    """Whether training learns from a dataset that the played environment itself gave (offline learning)."""
    if level is not None and level.kind not in ("none", "unknown"):
        return False
    known = {identity(one) for one in item.environments}
    frames = {id(one): one for made in item.environments for one in made.frame.chain()}
    frames |= {id(one): one for one in item.event.frame.chain()}
    for frame in frames.values():
        for node in own_nodes(frame.scope):
            if not isinstance(node, ast.Call) or "dataset" not in last_name(node.func).lower():
                continue
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            given += [node.func.value] if isinstance(node.func, ast.Attribute) else []
            found = {identity(one.value) for each in given for one in evaluator.evaluate(each, frame)}
            if known & found:
                return True
            sources = [one.value for each in given for one in evaluator.evaluate(each, frame)]
            trained = [
                one for two in sources if isinstance(two, Environment) for one in level_sets(evaluator, two)
            ]
            if level is not None and trained and all(differ(level, one) is False for one in trained):
                return True
    return False
