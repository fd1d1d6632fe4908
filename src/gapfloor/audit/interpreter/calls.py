"""What a call gives back: functions and classes of the repository, primitives, facts about dependencies."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable as Callable_
from dataclasses import replace
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.binding import argument, bind, fits, keyword_bindings
from gapfloor.audit.interpreter.facts import ActorFact, EnvironmentFact, find_actor, find_environment
from gapfloor.audit.interpreter.flags import flagged
from gapfloor.audit.interpreter.options import is_missing, is_settings_class, literal
from gapfloor.audit.interpreter.primitives import (
    DISTRIBUTION,
    DRAWS,
    MAXIMA,
    RANKINGS,
    SAME_OBJECT,
    draw_of_function,
    draw_of_generator,
    draw_of_receiver,
    noise_in,
)
from gapfloor.audit.interpreter.randomness import combine, is_deterministic_function, is_settled, noise_kind
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
    Guard,
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
    Value,
    describe,
)
from gapfloor.audit.reading.index import FunctionInfo, last_name

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

DEEPEST_CALL = 16
_ENVIRONMENT_WORD = re.compile(
    r"env|wrap|vec|monitor|normali|stack|transform|record|extract|clip|viewer|resize|gray|limit",
    re.IGNORECASE,
)
#: Constructors of environments outside the repository that no row of the facts describes.
_ENVIRONMENT_MAKER = re.compile(
    r"(Env|Environment)$|suite\.load$|(env|gym|craft|brax|retro|atari|mujoco|dmc|grid)\w*(\.\w+)*\.(make|make_env|create|"
    r"get_environment|load|make_vec|make_craftax_env_from_name|make_env_from_name)$",
)
_ACTING = re.compile(
    r"act|predict|step|policy|choose|select|sample|forward|infer|greedy|explor", re.IGNORECASE
)
_SHAPING = re.compile(
    r"array|tensor|clip|clamp|stack|concat|^cat$|squeeze|expand_dims|reshape|^int|^float|^long|^list$|^tuple$|numpy|"
    r"tree_map|map_structure|^map$|device_get|device_put|^to_|^from_|flatten|convert|cast|detach|act|round|where|rescale|^view$|^to$|^repeat$|^tile$|^item$|^cpu$|permute|transpose",
    re.IGNORECASE,
)
_FIRST_ARGUMENT = frozenset(
    {
        "deepcopy",
        "copy",
        "compile",
        "script",
        "DataParallel",
        "remote",
        "wrap",
        "jit",
        "vmap",
        "pmap",
        "filter_jit",
        "filter_vmap",
        "checkpoint",
        "trace",
        "function",
        "nn_jit",
        "no_grad",
        "inference_mode",
    }
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
#: Functions of numerical libraries that make objects instead of computing values.
OBJECT_MAKERS = frozenset(
    {
        "load",
        "device",
        "Generator",
        "default_rng",
        "RandomState",
        "manual_seed",
        "compile",
        "no_grad",
    }
)
_CASTS: dict[str, Callable_[[str | int | float], object]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
}
_SETTINGS_PARSERS = frozenset(
    {"cli", "parse", "ArgumentParser", "parse_args_into_dataclasses", "HfArgumentParser"}
)


def evaluate_call(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """The alternatives of a call."""
    function = call.func
    if isinstance(function, ast.Name) and function.id == "super":
        return _super(frame)
    if isinstance(function, ast.Name) and function.id == "getattr" and len(call.args) >= 2:
        name = literal(call.args[1])
        if isinstance(name, str):
            base = evaluator.evaluate(call.args[0], frame)
            named = [one for item in base for one in evaluator.objects.attribute(item, name, call, frame)]
            return tuple(_or_default(one, name, call, frame) for one in named)
    if isinstance(function, ast.Attribute):
        return _method_call(evaluator, call, function, frame)
    found: list[Alternative] = []
    for target in evaluator.evaluate(function, frame):
        found.extend(item.under(*target.guards) for item in call_value(evaluator, target, call, frame))
    return tuple(found)


def _or_default(item: Alternative, name: str, call: ast.Call, frame: Frame) -> Alternative:
    """`getattr(settings, name, default)`: the default, where no setting of that name is known."""
    default = literal(call.args[2]) if len(call.args) > 2 else None
    is_setting = isinstance(item.value, Unknown) and item.value.text == f"args.{name}"
    if len(call.args) < 3 or not is_setting or is_missing(default):
        return item
    mark = Mark(frame.module.path, call.lineno, f"setting '{name}', default {default!r}")
    return Alternative(Option(name, default, has_default=True), item.guards, (mark,), "option")


def call_value(
    evaluator: Evaluator, target: Alternative, call: ast.Call, frame: Frame
) -> tuple[Alternative, ...]:
    """What calling one alternative gives back."""
    value = target.value
    if isinstance(value, Callable):
        return invoke(evaluator, value, call, frame)
    if isinstance(value, Class):
        return construct(evaluator, value, call, frame)
    if isinstance(value, External):
        return _external_call(evaluator, value.name, call, frame)
    if isinstance(value, Instance):
        for name in ("__call__", "forward"):
            method = evaluator.objects.method(value.info, name)
            if method is not None:
                return invoke(evaluator, Callable(method, target), call, frame)
    if isinstance(value, Action | Environment):
        return (target,)
    if isinstance(value, ExternalObject):
        fact = find_actor(value.name, "__call__")
        if fact is not None:
            return by_fact(evaluator, fact, value, call, frame)
        if is_deterministic_function(value.name):
            return _layer_output(evaluator, call, frame)
    return _passes_through(evaluator, call, frame) or (Alternative(Unknown(describe(call))),)


def _layer_output(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """What a layer of a network gives: computed from its inputs, whatever observation or state these are."""
    found = computed(evaluator, call, frame)
    carried = tuple(item for item in found if isinstance(item.value, Action | Noise))
    return carried or (Alternative(Computed(call, frame, is_observed=True)),)


def computed(
    evaluator: Evaluator, call: ast.Call, frame: Frame, *receivers: tuple[Alternative, ...]
) -> tuple[Alternative, ...]:
    """What a function that only computes gives back: whatever its arguments carry."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    operands = [*receivers, *(evaluator.evaluate(item, frame) for item in given)]
    if _SHAPING.search(last_name(call.func)) and operands and is_settled(operands[0]):
        # Bounds, shapes and devices do not change how the first argument was chosen, unless they are random.
        rest = [one for one in operands[1:] if any(isinstance(item.value, Action | Noise) for item in one)]
        operands = [operands[0], *rest]
    return combine(operands, call, frame)


def invoke(evaluator: Evaluator, value: Callable, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """What a function of the repository gives back when called here."""
    if not may_enter(value.function, frame):
        return (Alternative(Unknown(describe(call))),)
    inner = evaluator.bound_frame(value.function, call, frame, value.receiver, value.parent, value.preset)
    mark = Mark(frame.module.path, call.lineno, f"{describe(call.func)}(...) is called")
    return tuple(
        item.noting(mark) if isinstance(item.value, Action | Sequence) else item
        for item in evaluator.returns(inner)
    )


def may_enter(function: FunctionInfo, frame: Frame) -> bool:
    """Whether to follow a call: not too deep, and not round in circles."""
    if frame.depth >= DEEPEST_CALL:
        return False
    return sum(one.function is function for one in frame.chain()) < 2


def construct(evaluator: Evaluator, value: Class, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """The object that calling a class makes; an environment stays one through its wrappers."""
    info = value.info
    made = Instance(info, call, frame, None)
    init = evaluator.objects.method(info, "__init__")
    if evaluator.objects.is_environment(info):
        inner = environments_among(evaluator, call, frame)
        if inner:
            return inner
        if _wraps(init):
            return (Alternative(Unknown(f"{info.name}(env)")),)
        return (Alternative(Environment(info.name, call, frame, info)),)
    if init is not None and may_enter(init, frame):
        alternative = Alternative(made)
        inner_frame = bind(evaluator, init, call, frame, alternative, value.parent)
        made = replace(made, init=inner_frame)
        inner_frame.receiver = Alternative(made)
    return (Alternative(made),)


def _wraps(init: FunctionInfo | None) -> bool:
    """Whether a constructor takes an environment, so that the class is a wrapper and not an environment itself."""
    if init is None:
        return False
    arguments = init.node.args
    return any(
        re.fullmatch(r"v?envs?|vec_env|environment", arg.arg)
        for arg in [*arguments.args, *arguments.kwonlyargs]
    )


def environments_among(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """The environments that a call's first environment argument can be, also inside a list of makers."""
    for given in [*call.args, *(keyword.value for keyword in call.keywords)]:
        found: list[Alternative] = []
        for item in evaluator.evaluate(given, frame):
            found.extend(_as_environments(evaluator, item, frame))
        if found:
            return tuple(found)
    return ()


def _as_environments(evaluator: Evaluator, item: Alternative, frame: Frame) -> list[Alternative]:
    value = item.value
    found: list[Alternative] = []
    if isinstance(value, Environment):
        return [item]
    if isinstance(value, Sequence):
        for element in value.elements[:2]:
            for inner in evaluator.evaluate(element, value.frame):
                found.extend(_as_environments(evaluator, inner, frame))
    elif isinstance(value, Callable) and may_enter(value.function, frame):
        inner_frame = evaluator.bound_frame(
            value.function, None, frame, value.receiver, value.parent, value.preset
        )
        for inner in evaluator.returns(inner_frame):
            if isinstance(inner.value, Environment | Callable):
                found.extend(_as_environments(evaluator, inner, inner_frame))
    return [one.under(*item.guards) for one in found]


def _super(frame: Frame) -> tuple[Alternative, ...]:
    current: Frame | None = frame
    while current is not None:
        if current.function is not None and current.function.owner is not None:
            return (Alternative(SuperOf(current.function.owner, current.receiver)),)
        current = current.parent
    return (Alternative(Unknown("super()")),)


def _method_call(
    evaluator: Evaluator, call: ast.Call, function: ast.Attribute, frame: Frame
) -> tuple[Alternative, ...]:
    found: list[Alternative] = []
    for base in evaluator.evaluate(function.value, frame):
        found.extend(item.under(*base.guards) for item in _method_of(evaluator, base, call, function, frame))
    return tuple(found)


def _method_of(
    evaluator: Evaluator, base: Alternative, call: ast.Call, function: ast.Attribute, frame: Frame
) -> tuple[Alternative, ...]:
    value, name = base.value, function.attr
    if isinstance(value, Action) and name not in DRAWS | MAXIMA:
        return (base,)
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
    found: list[Alternative] = []
    if not isinstance(value, Unknown | ExternalObject | KnownValue):
        targets = evaluator.objects.attribute(base, name, function, frame)
        for target in targets:
            if isinstance(target.value, Callable | Class | Instance | Action | ExternalObject):
                found.extend(
                    item.under(*target.guards) for item in call_value(evaluator, target, call, frame)
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


def _bound_external(evaluator: Evaluator, name: str, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """A call of something external, or of a method taken from an external object earlier (`self.step = model.step`)."""
    kind, separator, method = name.rpartition("().")
    if not separator:
        return _external_call(evaluator, name, call, frame)
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
        return _drawn(evaluator, drawn, call, frame)
    if isinstance(value, Noise):
        return (base,)
    if isinstance(value, Computed):
        return computed(evaluator, call, frame, (base,))
    through = _passes_through(evaluator, call, frame)
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
        return computed(evaluator, call, frame)
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
        if owner is None or evaluator.objects.is_environment(owner) or not may_enter(function, frame):
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
            for built in call_value(evaluator, builder, _Empty.call_like(value.call), value.frame):
                method = ast.Attribute(value=keyword.value, attr=fact.method, ctx=ast.Load())
                ast.copy_location(method, call)
                inner = _method_of(evaluator, built, call, method, value.frame)
                found.extend(item.noting(mark) for item in inner)
    return tuple(found) or (Alternative(Unknown(describe(call)), marks=(mark,)),)


class _Empty:
    """Makes a call without arguments at the place of another, for what a dependency calls itself."""

    @staticmethod
    def call_like(call: ast.Call) -> ast.Call:
        made = ast.Call(
            func=call.func, args=[], keywords=[ast.keyword(arg=None, value=ast.Name("?", ast.Load()))]
        )
        ast.copy_location(made, call)
        ast.copy_location(made.keywords[0].value, call)
        return made


def _passes_through(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """An action handed to a function that reshapes, clips or moves it comes back as that action."""
    if not _SHAPING.search(last_name(call.func)):
        return ()
    for given in [*call.args, *(keyword.value for keyword in call.keywords)]:
        found = evaluator.evaluate(given, frame)
        if any(isinstance(item.value, Action) for item in found):
            return tuple(
                item
                if isinstance(item.value, Action | Computed)
                else Alternative(Unknown(describe(call)), item.guards, item.marks)
                for item in found
            )
    return ()


def _partial(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """A function with keywords fixed beforehand; fixed positional arguments are not followed."""
    preset = tuple(keyword_bindings(evaluator, call, frame))
    found = []
    for item in evaluator.evaluate(call.args[0], frame):
        if isinstance(item.value, Callable) and len(call.args) == 1 and all(name for name, _ in preset):
            found.append(replace(item, value=replace(item.value, preset=(*item.value.preset, *preset))))
        else:
            found.append(Alternative(Unknown(describe(call)), item.guards))
    return tuple(found)


def _made_by_argument(
    evaluator: Evaluator, fact: EnvironmentFact, call: ast.Call, frame: Frame
) -> tuple[Alternative, ...]:
    """The environments that a function of the repository makes, where a constructor is given one."""
    given = argument(call, fact.factory, fact.factory_position) if fact.factory is not None else None
    if given is None:
        return ()
    found: list[Alternative] = []
    for item in evaluator.evaluate(given, frame):
        if isinstance(item.value, Callable | Class):
            made = call_value(evaluator, item, _Empty.call_like(call), frame)
            kept = [one for one in made if isinstance(one.value, Environment)]
            found.extend(kept or [Alternative(Unknown(describe(call)))])
    return tuple(found)


def _external_call(evaluator: Evaluator, name: str, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    last = name.rsplit(".", 1)[-1]
    environment = find_environment(name)
    if environment is not None:
        return _made_by_argument(evaluator, environment, call, frame) or (
            Alternative(Environment(name, call, frame)),
        )
    if last in ("partial", "partialmethod") and call.args:
        return _partial(evaluator, call, frame)
    if last in _FIRST_ARGUMENT and call.args:
        return evaluator.evaluate(call.args[0], frame)
    if last in ("instantiate", "instantiate_from_config") and call.args:
        return instantiate(evaluator, call, frame)
    if name in _CASTS and len(call.args) == 1:
        return _cast(evaluator, name, call, frame)
    if name == "vars" and call.args:
        return evaluator.evaluate(call.args[0], frame)
    if last in ("safe_load", "full_load", "unsafe_load", "compose") or name in (
        "yaml.load",
        "OmegaConf.load",
    ):
        return (Alternative(Namespace()),)
    if name in ("os.environ.get", "os.getenv") and call.args:
        return _environment_variable(evaluator, call, frame)
    if last in ("where", "select", "where_v2", "cond") and len(call.args) >= 3:
        return _chosen_by_condition(evaluator, last, call, frame)
    if last in _SETTINGS_PARSERS and call.args:
        for item in evaluator.evaluate(call.args[0], frame):
            if isinstance(item.value, Class) and is_settings_class(item.value.info.node):
                return (Alternative(Instance(item.value.info, call, frame, None)),)
    if name == "dict":
        given = keyword_bindings(evaluator, call, frame)
        items = {key: value for key, value in given if key}
        return (Alternative(Mapping(items, is_open=len(items) < len(given) or bool(call.args))),)
    rule = draw_of_function(name, call)
    if rule is not None:
        noise = noise_in(call, frame.scope) if rule == "argmax" else None
        return (
            Alternative(Action(noise or rule, call, frame, needs_distribution="sampled" in (noise, rule))),
        )
    if _ENVIRONMENT_WORD.search(name):
        inner = environments_among(evaluator, call, frame)
        if inner:
            return inner
    if _ENVIRONMENT_MAKER.search(name) and "." in name:
        return (Alternative(Environment(name, call, frame)),)
    through = _passes_through(evaluator, call, frame)
    if through:
        return through
    if name == "map" and len(call.args) > 1:
        return evaluator.evaluate(call.args[1], frame)
    kind = noise_kind(name)
    if kind is not None:
        return _drawn(evaluator, kind, call, frame)
    if last in RANKINGS and is_deterministic_function(name):
        return (Alternative(ExternalObject(f"{name}", call, frame)),)
    if is_deterministic_function(name) and not last[:1].isupper() and last not in OBJECT_MAKERS:
        return computed(evaluator, call, frame)
    return (Alternative(ExternalObject(name, call, frame)),)


def instantiate(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """Hydra's `instantiate(cfg.group)`: the class that the group's `_target_` names, made with the group's settings."""
    found: list[Alternative] = []
    for item in evaluator.evaluate(call.args[0], frame):
        space = item.value
        targets = (
            evaluator.options.in_files((*space.path, "_target_"), frame.chain()[0].module)
            if isinstance(space, Namespace) and space.path
            else []
        )
        if not targets:
            return (Alternative(Unknown(f"the class that {describe(call.args[0])} names")),)
        made = _Empty.call_like(call)
        made.args = call.args[1:]
        made.keywords = [*call.keywords, *made.keywords]
        for target in {str(one.value): one for one in targets}.values():
            mark = Mark(target.file, target.line, f"'_target_' is {target.value}")
            for value in evaluator.names.dotted(str(target.value), frame.module):
                if isinstance(value.value, Class | Callable):
                    found.extend(one.noting(mark) for one in call_value(evaluator, value, made, frame))
                else:
                    found.append(Alternative(Unknown(f"{target.value} ({target.file}:{target.line})")))
    return tuple(found)


def _drawn(evaluator: Evaluator, kind: str, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """Random numbers; numbers drawn around something that the policy computed are a sample of the policy."""
    given = [
        *call.args,
        *(keyword.value for keyword in call.keywords if keyword.arg not in ("size", "shape")),
    ]
    parameters = [item for one in given[:2] for item in evaluator.evaluate(one, frame)]
    takes_parameters = kind in ("normal", "other") and not last_name(call.func).endswith("_like")
    if takes_parameters and any(isinstance(item.value, Computed | Action) for item in parameters):
        unknown = [item for item in parameters if isinstance(item.value, Unknown)]
        drawn = Alternative(Action("sampled", call, frame, needs_distribution=True))
        return (drawn, *(Alternative(Unknown(describe(call)), item.guards) for item in unknown))
    return (Alternative(Noise(kind, call, frame)),)


def _cast(evaluator: Evaluator, name: str, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    found: list[Alternative] = []
    for item in evaluator.evaluate(call.args[0], frame):
        value = item.value
        plain = value.value if isinstance(value, KnownValue) else None
        if isinstance(value, Option) and value.has_default:
            plain = value.default
        if isinstance(plain, str | int | float) and (isinstance(value, KnownValue) or isinstance(plain, str)):
            try:
                made: Value = KnownValue(_CASTS[name](plain))
            except (ValueError, OverflowError):
                made = Unknown(describe(call))
            origin = "option" if isinstance(value, Option) else item.origin
            found.append(replace(item, value=made, origin=origin))
        elif isinstance(value, Option | Action | Computed | Noise):
            found.append(item)
        else:
            found.extend(combine([(item,)], call, frame))
    return tuple(found)


def _environment_variable(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """An environment variable is a setting with the default that the call gives."""
    name = literal(call.args[0])
    default = literal(call.args[1]) if len(call.args) > 1 else None
    has_default = not is_missing(default)
    option = Option(f"environment variable {name}", default if has_default else None, has_default)
    mark = Mark(frame.module.path, call.lineno, f"environment variable {name}, default {default!r}")
    return (Alternative(option, marks=(mark,), origin="option"),)


def _chosen_by_condition(
    evaluator: Evaluator, last: str, call: ast.Call, frame: Frame
) -> tuple[Alternative, ...]:
    """`where(condition, one, other)` and `cond(condition, one, other, ...)` choose like an if-expression."""
    test = call.args[0]
    found: list[Alternative] = []
    for branch, holds in ((call.args[1], True), (call.args[2], False)):
        inner = evaluator.evaluate(branch, frame)
        if last == "cond":
            inner = tuple(
                one
                for target in inner
                for one in call_value(evaluator, target, _Empty.call_like(call), frame)
            )
        found.extend(item.under(Guard(test, holds, frame)) for item in inner)
    if not any(isinstance(item.value, Action) for item in found):
        return computed(evaluator, call, frame) if last != "cond" else tuple(found)
    return tuple(
        item if isinstance(item.value, Action | Computed) else replace(item, value=_as_unknown(item, call))
        for item in found
    )


def _as_unknown(item: Alternative, call: ast.Call) -> Value:
    plain = isinstance(item.value, KnownValue | Option)
    return item.value if plain else Unknown(describe(call))
