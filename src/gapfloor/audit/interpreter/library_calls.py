"""Calls of functions outside the repository: draws, maxima, arithmetic, casts and makers of environments."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable as Callable_
from dataclasses import replace
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter import calls, construction
from gapfloor.audit.interpreter.binding import keyword_bindings
from gapfloor.audit.interpreter.facts import find_environment
from gapfloor.audit.interpreter.options import is_missing, is_settings_class, literal
from gapfloor.audit.interpreter.primitives import (
    RANKINGS,
    draw_of_function,
    noise_in,
)
from gapfloor.audit.interpreter.randomness import combine, is_deterministic_function, is_settled, noise_kind
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Callable,
    Class,
    Computed,
    Environment,
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
    Unknown,
    Value,
    describe,
)
from gapfloor.audit.reading.index import last_name

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

_ENVIRONMENT_WORD = re.compile(
    r"env|wrap|vec|monitor|normali|stack|transform|record|extract|clip|viewer|resize|gray|limit",
    re.IGNORECASE,
)
#: Constructors of environments outside the repository that no row of the facts describes.
_ENVIRONMENT_MAKER = re.compile(
    r"(Env|Environment)$|suite\.load$|(env|gym|craft|brax|retro|atari|mujoco|dmc|grid)\w*(\.\w+)*\.(make|make_env|create|"
    r"get_environment|load|make_vec|make_craftax_env_from_name|make_env_from_name)$",
)
#: Longer lists of arguments are data.
MOST_PARTS = 8
_SHAPING = re.compile(
    r"array|tensor|clip|clamp|stack|concat|^cat$|squeeze|expand_dims|reshape|^int|^float|^long|^list$|^tuple$|numpy|"
    r"tree_map|map_structure|^map$|device_get|device_put|^to_|^from_|flatten|convert|cast|detach|act|round|where|rescale|^view$|^to$|^repeat$|^tile$|^item$|^cpu$|permute|transpose|^split$|^chunk$|^unbind$|^narrow$|softmax$",
    re.IGNORECASE,
)
#: Methods that move or reshape the values of a tensor, whatever they are given.
_MOVING = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "view",
        "reshape",
        "expand",
        "expand_as",
        "type",
        "type_as",
        "astype",
        "unsqueeze",
        "squeeze",
    }
    | {"repeat", "tile", "permute", "transpose", "flatten"}
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


def external_call(evaluator: Evaluator, name: str, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """What calling the external function or class `name` gives back."""
    last = name.rsplit(".", 1)[-1]
    environment = find_environment(name)
    if environment is not None:
        return construction.made_by_argument(evaluator, environment, call, frame) or (
            Alternative(Environment(name, call, frame)),
        )
    if last in ("partial", "partialmethod") and call.args:
        return _partial(evaluator, call, frame)
    if last in _FIRST_ARGUMENT and call.args:
        return evaluator.evaluate(call.args[0], frame)
    if last in ("instantiate", "instantiate_from_config") and call.args:
        return construction.instantiate(evaluator, call, frame)
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
        inner = construction.environments_among(evaluator, call, frame)
        if inner:
            return inner
    if _ENVIRONMENT_MAKER.search(name) and "." in name:
        return (Alternative(Environment(name, call, frame)),)
    through = passes_through(evaluator, call, frame)
    if through:
        return through
    if name == "map" and len(call.args) > 1:
        return evaluator.evaluate(call.args[1], frame)
    kind = noise_kind(name)
    if kind is not None:
        return drawn_numbers(evaluator, kind, call, frame)
    if last in RANKINGS and is_deterministic_function(name):
        return (Alternative(ExternalObject(f"{name}", call, frame)),)
    is_function = not last[:1].isupper() or last.endswith("Tensor")
    if is_deterministic_function(name) and is_function and last not in OBJECT_MAKERS:
        return computed(evaluator, call, frame)
    return (Alternative(ExternalObject(name, call, frame)),)


def computed(
    evaluator: Evaluator, call: ast.Call, frame: Frame, *receivers: tuple[Alternative, ...]
) -> tuple[Alternative, ...]:
    """What a function that only computes gives back: whatever its arguments carry."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    operands = [*receivers, *(_with_parts(evaluator, item, frame) for item in given)]
    name = last_name(call.func)
    if name in _MOVING and operands and all(isinstance(item.value, Computed) for item in operands[0]):
        operands = operands[:1]  # a device, a type or a shape that cannot be read does not change the values
    elif _SHAPING.search(name) and operands and is_settled(operands[0]):
        # Bounds, shapes and devices do not change how the first argument was chosen, unless they are random.
        rest = [one for one in operands[1:] if any(isinstance(item.value, Action | Noise) for item in one)]
        operands = [operands[0], *rest]
    return combine(operands, call, frame)


def _with_parts(evaluator: Evaluator, node: ast.expr, frame: Frame) -> tuple[Alternative, ...]:
    """An argument; of a list also the random numbers that are in it: `torch.cat([state, noise])`."""
    found = evaluator.evaluate(node, frame)
    parts = [
        one
        for item in found
        if isinstance(item.value, Sequence) and len(item.value.elements) <= MOST_PARTS
        for element in item.value.elements
        for one in evaluator.evaluate(element, item.value.frame)
        if isinstance(one.value, Noise)
    ]
    return (*found, *parts)


def passes_through(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
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
    """A function or class with keywords fixed beforehand; fixed positional arguments are not followed."""
    preset = tuple(keyword_bindings(evaluator, call, frame))
    found = []
    for item in evaluator.evaluate(call.args[0], frame):
        is_readable = len(call.args) == 1 and all(name for name, _ in preset)
        if isinstance(item.value, Instance):
            method = evaluator.objects.method(item.value.info, "__call__")
            item = item if method is None else replace(item, value=Callable(method, item))
        if isinstance(item.value, Callable | Class) and is_readable:
            found.append(replace(item, value=replace(item.value, preset=(*item.value.preset, *preset))))
        else:
            found.append(Alternative(Unknown(describe(call)), item.guards))
    return tuple(found)


def drawn_numbers(evaluator: Evaluator, kind: str, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
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
    known, used = evaluator.truth(test, frame) if last != "cond" else (None, [])
    if known is not None and all(item.origin != "option" for item in used):
        taken = evaluator.evaluate(call.args[1 if known else 2], frame)
        if not any(isinstance(item.value, Action) for item in taken):
            return taken  # such as one of two epsilons; a rule that is kept out shows what decides
    found: list[Alternative] = []
    for branch, holds in ((call.args[1], True), (call.args[2], False)):
        inner = evaluator.evaluate(branch, frame)
        if last == "cond":
            inner = tuple(
                one
                for target in inner
                for one in calls.call_value(evaluator, target, construction.call_like(call), frame)
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
