"""Calls of methods: of the repository's objects, of distributions and tensors, and of objects of dependencies."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter import calls, construction, library_calls, rllib_actions
from gapfloor.audit.interpreter.binding import fits
from gapfloor.audit.interpreter.facts import ActorFact, find_actor
from gapfloor.audit.interpreter.flags import flagged
from gapfloor.audit.interpreter.options import literal
from gapfloor.audit.interpreter.primitives import (
    DISTRIBUTION,
    DRAWS,
    MAXIMA,
    RANKINGS,
    SAME_OBJECT,
    draw_of_generator,
    draw_of_receiver,
    noise_in,
)
from gapfloor.audit.interpreter.randomness import is_deterministic_function, noise_kind
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Binding,
    Callable,
    Class,
    Computed,
    Environment,
    External,
    ExternalObject,
    Frame,
    Instance,
    KnownValue,
    Mapping,
    Mark,
    Namespace,
    Noise,
    Option,
    Sequence,
    SuperOf,
    Unknown,
    describe,
)
from gapfloor.audit.reading.index import FunctionInfo

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

_ACTING = re.compile(
    r"act|predict|step|policy|choose|select|sample|forward|infer|greedy|explor", re.IGNORECASE
)
#: Methods of an environment that give observations, rewards and ends.
OBSERVING = frozenset(
    {
        "reset",
        "step",
        "step_wait",
        "observe",
        "get_obs",
        "get_observation",
        "get_observations",
        "get_state",
        "get_avail_actions",
        "last",
        "recv",
        "reset_wait",
        "initial_reset",
        "reset_env",
        "step_env",
    }
)
#: Methods of a tensor that change its form and not its value.
PLAIN_CASTS = frozenset(
    {
        "item",
        "long",
        "int",
        "float",
        "bool",
        "double",
        "to",
        "cpu",
        "numpy",
        "detach",
        "astype",
        "view",
        "reshape",
        "squeeze",
    }
)


def method_call(
    evaluator: Evaluator, call: ast.Call, function: ast.Attribute, frame: Frame
) -> tuple[Alternative, ...]:
    """What `receiver.name(...)` gives back, for every receiver that is possible."""
    found: list[Alternative] = []
    for base in evaluator.evaluate(function.value, frame):
        found.extend(item.under(*base.guards) for item in method_of(evaluator, base, call, function, frame))
    return tuple(found)


def method_of(
    evaluator: Evaluator, base: Alternative, call: ast.Call, function: ast.Attribute, frame: Frame
) -> tuple[Alternative, ...]:
    """What the method of one possible receiver gives back."""
    value, name = base.value, function.attr
    if isinstance(value, Action) and name not in DRAWS | MAXIMA:
        return _on_action(evaluator, base, call, frame)
    if isinstance(value, Mapping) and name in ("get", "pop") and call.args:
        return _get(evaluator, value, call, frame)
    if isinstance(value, Environment):
        if name in OBSERVING:
            return (Alternative(Computed(call, frame, is_observed=True), base.guards),)
        return (Alternative(Unknown(describe(call))),)
    if isinstance(value, Sequence | Mapping) and name in ("copy", "values", "items"):
        return (base,)
    if isinstance(value, KnownValue | Option) and name in PLAIN_CASTS:
        return (base,)
    if (
        name in SAME_OBJECT
        and isinstance(value, Instance)
        and evaluator.objects.method(value.info, name) is None
    ):
        return (base,)
    if name in SAME_OBJECT and isinstance(value, SuperOf) and value.receiver is not None:
        own = evaluator.objects.attribute(base, name, function, frame)
        if not any(isinstance(item.value, Callable) for item in own):
            return (value.receiver,)  # `return super().to(device)`
    found: list[Alternative] = []
    if not isinstance(value, Unknown | ExternalObject | KnownValue):
        targets = evaluator.objects.attribute(base, name, function, frame)
        for target in targets:
            if isinstance(target.value, Callable | Class | Instance | Action | ExternalObject):
                found.extend(
                    item.under(*target.guards) for item in calls.call_value(evaluator, target, call, frame)
                )
            elif isinstance(target.value, External):
                found.extend(_bound_external(evaluator, target.value.name, call, frame))
            elif isinstance(target.value, Unknown) and len(targets) > 1:
                found.append(target)  # apart from what the class says, something that cannot be read
    is_distribution = isinstance(value, Instance) and any(
        DISTRIBUTION.search(base_name.rsplit(".", 1)[-1])
        for base_name in evaluator.objects.external_bases(value.info)
    )
    if (
        is_distribution
        and name in DRAWS | MAXIMA
        and not any(isinstance(item.value, Action) for item in found)
    ):
        found = []  # an override that cannot be read still draws, or still gives the mode, by its contract
    if found:
        return tuple(found)
    return _primitive_method(evaluator, base, call, function, frame)


def _on_action(
    evaluator: Evaluator, base: Alternative, call: ast.Call, frame: Frame
) -> tuple[Alternative, ...]:
    """A method of a chosen action gives that action, unless it mixes in noise or another one: `add_`, `at[i].set`."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    mixed = [one for one in given if isinstance(one, ast.Name | ast.Attribute | ast.Call | ast.BinOp)]
    if any(
        isinstance(item.value, Noise | Action) for one in mixed for item in evaluator.evaluate(one, frame)
    ):
        return library_calls.computed(evaluator, call, frame, (base,))
    return (base,)


def _bound_external(evaluator: Evaluator, name: str, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """A call of something external, or of a method taken from an external object earlier (`self.step = model.step`)."""
    kind, separator, method = name.rpartition("().")
    if not separator:
        return library_calls.external_call(evaluator, name, call, frame)
    fact = find_actor(kind, method)
    return by_fact(evaluator, fact, None, call, frame) if fact is not None else ()


def _primitive_method(
    evaluator: Evaluator, base: Alternative, call: ast.Call, function: ast.Attribute, frame: Frame
) -> tuple[Alternative, ...]:
    value, name = base.value, function.attr
    kind = value.name if isinstance(value, ExternalObject | External) else ""
    if isinstance(value, Instance):
        kind = next(iter(evaluator.objects.external_bases(value.info)), "")
    if isinstance(value, SuperOf):
        kind = next(iter(evaluator.objects.external_bases(value.info)), "")
    fact = find_actor(kind, name) if kind else None
    if fact is not None:
        return by_fact(evaluator, fact, value, call, frame)
    if name == "parse_args" or (name == "parse_known_args"):
        module = value.frame.module if isinstance(value, ExternalObject) else None
        return (Alternative(Namespace(module=module)),)
    if name == "run" and "sess" in describe(function.value).lower() and call.args:
        return evaluator.evaluate(call.args[0], frame)
    is_distribution = bool(kind and DISTRIBUTION.search(kind.rsplit(".", 1)[-1]))
    if name in DRAWS:
        rule = "sampled" if is_distribution else draw_of_receiver(function.value)
        if rule is not None:
            return (Alternative(Action(rule, call, frame, needs_distribution=rule == "sampled")),)
    if name in MAXIMA:
        return (_maximum(evaluator, name, base, function.value, call, frame),)
    if name in RANKINGS and isinstance(value, Unknown | ExternalObject | Computed | External):
        return (Alternative(ExternalObject(name, call, frame)),)
    rng = draw_of_generator(kind or describe(function.value), name, call)
    if rng is not None:
        return (Alternative(Action(rng, call, frame, needs_distribution=rng == "sampled")),)
    drawn = noise_kind(f"{kind}.{name}") if kind else None
    drawn = drawn or noise_kind(f"torch.random.{name}") if name.endswith("_") else drawn
    if drawn is not None:
        return library_calls.drawn_numbers(evaluator, drawn, call, frame)
    if isinstance(value, Noise):
        return (base,)
    if isinstance(value, Computed):
        return library_calls.computed(evaluator, call, frame, (base,))
    through = library_calls.passes_through(evaluator, call, frame)
    if through:
        return through
    if name in SAME_OBJECT:
        return (base,)
    if name in OBSERVING and isinstance(value, Unknown) and "env" in describe(function.value).lower():
        return (Alternative(Computed(call, frame, is_observed=True), base.guards),)
    if (
        kind
        and is_deterministic_function(kind.split("()")[0])
        and not (is_distribution or isinstance(value, Instance))
    ):
        return library_calls.computed(evaluator, call, frame)
    if isinstance(value, Unknown) and name in rllib_actions.METHODS and rllib_actions.imports_rllib(frame):
        return rllib_actions.rllib_action(evaluator, call, frame)
    if isinstance(value, Unknown) and _ACTING.search(name):
        return _by_name(evaluator, name, call, frame) or (Alternative(Unknown(describe(call))),)
    return (Alternative(ExternalObject(f"{kind}().{name}" if kind else f"?.{name}", call, frame)),)


def _maximum(
    evaluator: Evaluator, name: str, base: Alternative, receiver: ast.expr, call: ast.Call, frame: Frame
) -> Alternative:
    """The maximum of what a policy gave; the maximum of something that carries noise is a draw."""
    noise = noise_in(receiver, frame.scope) if name == "argmax" else None
    if isinstance(base.value, Noise):
        noise = "sampled" if base.value.kind in ("gumbel", "exponential") else noise or "noisy"
    is_draw = name == "mode" or noise == "sampled"
    return Alternative(Action(noise or "argmax", call, frame, needs_distribution=is_draw))


def _by_name(evaluator: Evaluator, name: str, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """Every method of that name that the script can load; the receiver's class is not known.

    A candidate whose result cannot be read stays as something unknown, unless it is a stub.
    """
    found: list[Alternative] = []
    fitting = []
    for function in evaluator.index.functions_by_name.get(name, []):
        owner = function.owner
        if owner is None or evaluator.objects.is_environment(owner) or not calls.may_enter(function, frame):
            continue
        if fits(function, call) and not is_stub(function):
            fitting.append((function, owner))
    reach = evaluator.index.reach(frame.chain()[0].module)
    near = [item for item in fitting if item[0].module.path in reach]
    for function, owner in near or fitting:
        receiver = Alternative(Instance(owner, None, None, None))
        inner = evaluator.bound_frame(function, call, frame, receiver, None)
        mark = Mark(function.module.path, function.node.lineno, f"candidate: {owner.name}.{name}")
        for item in evaluator.returns(inner):
            if isinstance(item.value, KnownValue):
                continue
            found.append(item.noting(mark))
    if not any(isinstance(item.value, Action | Sequence | Mapping | Computed) for item in found):
        return ()
    return tuple(found)


def is_stub(function: FunctionInfo) -> bool:
    """Whether a function only documents, refuses or passes."""
    if isinstance(function.node, ast.Lambda):
        return False
    return all(
        isinstance(statement, ast.Raise | ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in function.node.body
    )


def _get(evaluator: Evaluator, value: Mapping, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    key = literal(call.args[0])
    if isinstance(key, str) and key in value.items:
        return evaluator.evaluate_binding(value.items[key], key)
    open_key = (Alternative(Unknown(describe(call))),) if value.is_open else ()
    if len(call.args) > 1:
        default = evaluator.evaluate_binding(Binding(call.args[1], frame, is_default=True), str(key))
        return (*default, *open_key)
    return (Alternative(KnownValue(None), origin="literal"), *open_key)


def by_fact(
    evaluator: Evaluator, fact: ActorFact, value: object, call: ast.Call, frame: Frame
) -> tuple[Alternative, ...]:
    """The action of an object of a dependency, by what is known about it."""
    mark = Mark(frame.module.path, call.lineno, f"{fact.name}.{fact.method}: {fact.source}")
    if fact.rule is not None:
        return (Alternative(Action(fact.rule, call, frame, needs_distribution=True), marks=(mark,)),)
    if fact.delegates_to is not None and isinstance(value, ExternalObject):
        return _delegated(evaluator, fact, value, call, mark)
    if fact.flag_at == "constructor":
        if not isinstance(value, ExternalObject) or value.name != fact.name:
            return (Alternative(Unknown(describe(call)), marks=(mark,)),)
        call, frame = value.call, value.frame
    if fact.flag is not None and fact.true and fact.false:
        return flagged(fact.flag, fact.flag_position, fact.default, fact.true, fact.false, call, frame, mark)
    return (Alternative(Unknown(describe(call))),)


def _delegated(
    evaluator: Evaluator, fact: ActorFact, value: ExternalObject, call: ast.Call, mark: Mark
) -> tuple[Alternative, ...]:
    """The dependency builds its actor by calling what it was given, then calls the same method on it."""
    found: list[Alternative] = []
    for keyword in value.call.keywords:
        if keyword.arg != fact.delegates_to:
            continue
        for builder in evaluator.evaluate(keyword.value, value.frame):
            for built in calls.call_value(
                evaluator, builder, construction.call_like(value.call), value.frame
            ):
                method = ast.Attribute(value=keyword.value, attr=fact.method, ctx=ast.Load())
                ast.copy_location(method, call)
                inner = method_of(evaluator, built, call, method, value.frame)
                found.extend(item.noting(mark) for item in inner)
    return tuple(found) or (Alternative(Unknown(describe(call)), marks=(mark,)),)
