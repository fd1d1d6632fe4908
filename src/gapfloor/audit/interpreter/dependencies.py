"""Which action a dependency's own loop takes: its flag, and what the flag means for the agent it is given."""

from __future__ import annotations

import ast
from dataclasses import replace

from gapfloor.audit.interpreter import methods
from gapfloor.audit.interpreter.binding import argument
from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.facts import ActorFact, LoopFact, actor_facts, find_actor
from gapfloor.audit.interpreter.flags import flagged
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    External,
    ExternalObject,
    Frame,
    Mark,
    Unknown,
)
from gapfloor.audit.reading.index import last_name

_NOT_KNOWN = "unresolved"


def actions_of_loop(
    evaluator: Evaluator, fact: LoopFact, call: ast.Call, frame: Frame, mark: Mark
) -> tuple[Alternative, ...]:
    """The actions that a loop of a dependency, called here, takes."""
    if fact.rule is not None:
        return (Alternative(Action(fact.rule, call, frame, needs_distribution=True), marks=(mark,)),)
    actors = _actors(evaluator, fact, call, frame)
    if fact.flag is not None and fact.true and fact.false:
        known = [actor for actor, _ in actors] if actors else _imported_actors(evaluator, fact)
        return flagged(
            fact.flag,
            fact.flag_position,
            fact.default,
            fact.true,
            _agreed(known) or fact.false,
            call,
            frame,
            mark,
        )
    found = [
        item.noting(mark)
        for actor, value in actors
        for item in methods.by_fact(evaluator, actor, value, call, frame)
    ]
    return tuple(found) or (Alternative(Unknown("the dependency decides"), marks=(mark,)),)


def exploration_around(evaluator: Evaluator, node: ast.AST, frame: Frame) -> tuple[Alternative, ...]:
    """The action that a TorchRL policy takes inside `with set_exploration_type(...)`, in any frame around `node`.

    Deterministic types take the mode, the mean or the median; what a random type draws depends on the policy.
    """
    here: Frame | None = frame
    current: ast.AST | None = node
    while here is not None:
        while current is not None and current is not here.scope:
            if isinstance(current, ast.With | ast.AsyncWith):
                for item in current.items:
                    call = item.context_expr
                    if (
                        isinstance(call, ast.Call)
                        and last_name(call.func) == "set_exploration_type"
                        and call.args
                    ):
                        return _explored(evaluator, call, here)
            current = here.module.parents.get(current)
        current, here = here.call, here.caller
    return ()


def _explored(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    mark = Mark(
        frame.module.path,
        call.lineno,
        "set_exploration_type decides: pytorch/rl 0.14.0 @ae9719f torchrl/envs/utils.py, ExplorationType",
    )
    found = []
    for item in evaluator.evaluate(call.args[0], frame):
        name = item.value.name.rsplit(".", 1)[-1] if isinstance(item.value, External) else ""
        rule = "argmax" if name in ("DETERMINISTIC", "MODE", "MEAN", "MEDIAN") else _NOT_KNOWN
        found.append(replace(item.noting(mark), value=Action(rule, call, frame, needs_distribution=True)))
    return tuple(found)


def _actors(
    evaluator: Evaluator, fact: LoopFact, call: ast.Call, frame: Frame
) -> list[tuple[ActorFact, ExternalObject]]:
    """What is known about the agent that the loop is given; nothing, unless every candidate is known."""
    given = argument(call, fact.actor, fact.actor_position)
    if given is None or fact.actor_method is None:
        return []
    found = []
    for item in evaluator.evaluate(given, frame):
        actor = (
            find_actor(item.value.name, fact.actor_method) if isinstance(item.value, ExternalObject) else None
        )
        if actor is None or not isinstance(item.value, ExternalObject):
            return []
        found.append((actor, item.value))
    return found


def _imported_actors(evaluator: Evaluator, fact: LoopFact) -> list[ActorFact]:
    """The agents of known packages that the repository imports; none if it imports a package as a whole."""
    if fact.actor_method is None:
        return []
    found = []
    packages = {actor.name.split(".")[0] for actor in actor_facts() if actor.method == fact.actor_method}
    for module in evaluator.index.modules.values():
        for name, dotted in module.imports.items():
            if dotted in packages or (name.startswith("*") and dotted.split(".")[0] in packages):
                return []
            actor = find_actor(dotted, fact.actor_method)
            if actor is not None and actor.name not in packages:
                found.append(actor)
    return found


def _agreed(actors: list[ActorFact]) -> str | None:
    """The rule of agents without their flag, where all have the same."""
    rules = {actor.rule or actor.false or _NOT_KNOWN for actor in actors}
    return rules.pop() if len(rules) == 1 else None
