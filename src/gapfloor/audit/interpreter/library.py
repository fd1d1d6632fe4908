"""Calls of what is outside the repository: draws, maxima, arithmetic, casts, makers of environments, known agents."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from gapfloor.audit.interpreter import calls, classes
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.classes import DISTRIBUTION
from gapfloor.audit.interpreter.facts import (
    Fact,
    facts,
    find_actor,
    find_environment,
    is_deterministic_function,
    is_noise_layer,
    noise_kind,
    pattern,
    table,
    words,
)
from gapfloor.audit.interpreter.operators import RANKINGS, RECORDED, combine, innermost
from gapfloor.audit.interpreter.options import CASTS, MISSING, cast, is_settings_class
from gapfloor.audit.interpreter.values import Alternative, Frame, Mark, describe
from gapfloor.audit.reading.index import arguments_of, last_name, names_in

Alternatives = tuple[Alternative, ...]
DRAWS = frozenset({"sample", "rsample", "sample_n", "multinomial", "sample_and_log_prob"})
MAXIMA = frozenset({"argmax", "mode"})
_NOT_A_POLICY = pattern("not_a_policy")
SHAPING = pattern("shaping")
_FIRST_ARGUMENT = words("first_argument")
_OBJECT_MAKERS = words("object_makers")
_SETTINGS_PARSERS = words("settings_parsers")
_SETTINGS_LOADERS = words("settings_loaders")
_ENVIRONMENT_WORD = pattern("environment_word")
_ENVIRONMENT_MAKER = pattern("environment_maker")
_NOISE_WORD = re.compile(r"gumbel|rand|uniform|normal$|noise|thompson", re.IGNORECASE)
_BEST = re.compile(r"^(?!.*(eps|non|sample_greedy)).*(determin|greedy)", re.IGNORECASE)


def external_call(name: str, call: ast.Call, frame: Frame) -> Alternatives:
    """What calling the external function or class `name` gives back."""
    last = name.rsplit(".", 1)[-1]
    first = call.args[0] if call.args else None
    fact = find_environment(name)
    if fact is not None:
        given = calls.argument(call, fact.factory, fact.factory_position) if fact.factory else None
        if any(isinstance(item.value, v.Callable | v.Class) for item in frame.evaluate(given)):
            return calls.environments_of(given, frame) or (Alternative(v.Unknown(describe(call))),)
        return (Alternative(v.Environment(name, call, frame)),)
    if last in ("partial", "partialmethod", "Partial") and first is not None:
        return _partial(call, frame)
    if last in _FIRST_ARGUMENT and first is not None:
        return frame.evaluate(first)
    if last in ("instantiate", "instantiate_from_config") and first is not None:
        return _instantiate(call, frame)
    if name in CASTS and len(call.args) == 1:
        return _cast(name, call, frame)
    if {last, name} & _SETTINGS_LOADERS:
        return (Alternative(v.Namespace()),)
    if last in _SETTINGS_PARSERS and first is not None:
        for item in frame.evaluate(first):
            if isinstance(item.value, v.Class) and is_settings_class(item.value.info.node):
                return (Alternative(v.Instance(item.value.info, call)),)
    if name == "dict":
        given_items = calls.keyword_bindings(call, frame)
        items = {key: value for key, value in given_items if key}
        return (Alternative(v.Mapping(items, is_open=len(items) < len(given_items) or bool(call.args))),)
    rule = draw_of_function(name, call)
    if rule == "argmax" and first is not None:
        values = frame.evaluate(first)
        return tuple(_maximum(item, first, call, frame).after(item) for item in values)
    if rule == "sampled" and any(word.startswith("greedy") for one in call.args for word in names_in(one)):
        item = Alternative(v.Action("argmax", call, frame, True))  # among the best actions
        return (item.doubting("what is drawn from is named like the best actions"),)
    if rule is not None:
        return (Alternative(v.Action(rule, call, frame, rule == "sampled")),)
    if _ENVIRONMENT_WORD.search(name):
        for one in arguments_of(call):
            inner = calls.environments_of(one, frame)
            if inner:
                return inner
    if _ENVIRONMENT_MAKER.search(name) and "." in name:
        return (Alternative(v.Environment(name, call, frame)),)
    if SHAPING.search(last) and first is not None:
        through = _passes_through(call, frame)
        if through:
            return through
    kind = noise_kind(name)
    if kind is not None:
        return drawn_numbers(kind, call, frame)
    is_choice = last in ("where", "select") and len(call.args) == 3
    if is_choice and first is not None and frame.truth(first)[0] is not None:
        branches = ((True, call.args[1]), (False, call.args[2]))  # `where(is_greedy, best, drawn)`
        pairs = [(v.Guard(first, holds, frame), frame.evaluate(one)) for holds, one in branches]
        return tuple(item.under(guard) for guard, found in pairs for item in found)
    if last in RANKINGS and is_deterministic_function(name):
        return (Alternative(v.ExternalObject(name, call, frame)),)
    is_function = not last[:1].isupper() or last.endswith("Tensor")
    if is_deterministic_function(name) and is_function and last not in _OBJECT_MAKERS:
        return computed(call, frame)
    operands = [frame.evaluate(one) for one in call.args]
    if any(isinstance(item.value, v.Noise | v.Action) for one in operands for item in one):
        # What is made of a choice or of random numbers carries them on: Variable(torch.randn(3)).
        found = combine(operands, call, frame)
        if is_deterministic_function(name):
            return found
        return tuple(item.doubting(f"{name}() is taken to hand on what it is given") for item in found)
    stated = _by_flag(call, frame) if is_function else ()
    return stated or (Alternative(v.ExternalObject(name, call, frame)),)


def draw_of_function(name: str, call: ast.Call) -> str | None:
    """The rule of an external function called `name`: sampled, argmax, random, or None for others."""
    last = name.rsplit(".", 1)[-1]
    package = name.split(".", 1)[0]
    has_weights = any(keyword.arg in ("p", "weights") for keyword in call.keywords) or (
        len(call.args) > (1 if last == "choices" else 3)
    )
    if last in ("choice", "choices") and package in ("numpy", "random", "np", "jax"):
        return "sampled" if has_weights else "random"
    if last in ("multinomial", "categorical_sample") or (
        last == "categorical" and package not in ("random", "numpy")
    ):
        return "sampled"
    if last in ("argmax", "nanargmax"):
        return "argmax"
    if last == "sample" and name.rpartition(".")[0].endswith("space"):
        return "random"
    is_uniform = last in ("randint", "randrange", "random_integers", "integers", "choice")
    return "random" if is_uniform and ("random" in name or "torch" in name) else None


def _maximum(base: Alternative, maximised: ast.expr, call: ast.Call, frame: Frame) -> Alternative:
    """The maximum of what a policy gave; the maximum of something that carries noise is a draw, or noisy."""
    value, names = base.value, names_in(maximised)
    is_named = any(map(_NOISE_WORD.search, names))
    # The logarithm of a logarithm (the Gumbel trick) and the place of noise in a running sum are draws.
    logs = [node for node in ast.walk(maximised) if isinstance(node, ast.Call) and last_name(node) == "log"]
    is_draw = any(one is not other for one in logs for other in ast.walk(one) if other in logs)
    is_summed = bool({"cumsum", "cumprod", "searchsorted"} & names)
    is_draw = is_draw or (is_summed and (is_named or isinstance(value, v.Noise)))
    is_draw = is_draw or (isinstance(value, v.Noise) and value.kind in ("gumbel", "exponential"))
    is_draw = is_draw or (isinstance(value, v.Action) and value.rule == "sampled")
    is_noisy = isinstance(value, v.Noise) or (isinstance(value, v.Action) and value.rule == "noisy")
    if is_draw or is_noisy:
        return Alternative(v.Action("sampled" if is_draw else "noisy", call, frame, is_draw))
    item = Alternative(v.Action("argmax", call, frame))
    is_doubtful = is_named and not isinstance(value, v.Computed)
    return item.doubting("what is maximised is named like noise") if is_doubtful else item


def computed(
    call: ast.Call, frame: Frame, *receivers: Alternatives, is_network: bool = False
) -> Alternatives:
    """What a function that only computes gives back: whatever its arguments carry."""
    given = arguments_of(call)
    operands = [*receivers, *(_with_parts(item, frame) for item in given)]
    settled = operands and all(
        isinstance(item.value, v.Action) or (isinstance(item.value, v.Computed) and item.value.is_observed)
        for item in operands[0]
    )
    random = [one for one in operands if any(isinstance(item.value, v.Action | v.Noise) for item in one)]
    if settled and operands[0] and SHAPING.search(last_name(call.func)):
        # Bounds, shapes and devices do not change how the first argument was chosen, unless they are random.
        operands = [operands[0], *(one for one in random if one is not operands[0])]
    if is_network:
        # What goes into a network is seen, however it was prepared; what it is cannot change how the network answers.
        operands = [(Alternative(v.Computed(call, frame, is_observed=True)),), *random]
    return combine(operands or [(Alternative(v.Computed(call, frame)),)], call, frame)


def _with_parts(node: ast.expr, frame: Frame) -> Alternatives:
    """An argument; of a list also what is in it: `torch.cat([state, noise])`."""
    found = frame.evaluate(node)
    parts = [
        one
        for item in found
        if isinstance(item.value, v.Sequence) and len(item.value.elements) <= 8
        for element in item.value.elements
        for one in item.value.frame.evaluate(element)
        if isinstance(one.value, v.Noise | v.Action | v.Computed)
    ]
    return (*found, *parts)


def _passes_through(call: ast.Call, frame: Frame) -> Alternatives:
    """An action (or a list of them) handed to a function that reshapes, clips or moves it comes back as it was."""
    kept = (v.Action, v.Computed, v.Sequence, v.Noise, v.KnownValue, v.Mapping)
    for found in map(frame.evaluate, arguments_of(call)):
        if any(isinstance(item.value, v.Action | v.Sequence) for item in found):
            values = [
                one.value if isinstance(one.value, kept) else innermost(one.value, call) for one in found
            ]
            return tuple(replace(item, value=value) for item, value in zip(found, values, strict=True))
    return ()


def _partial(call: ast.Call, frame: Frame) -> Alternatives:
    """A function, class or callable object with arguments fixed beforehand."""
    named = tuple(calls.keyword_bindings(call, frame))
    preset = (*((str(number), v.Binding(one, frame)) for number, one in enumerate(call.args[1:])), *named)
    found = []
    for item in frame.evaluate(call.args[0]):
        value = item.value
        if isinstance(value, v.Instance):
            methods = [classes.method(value.info, name) for name in ("__call__", "forward")]
            value = next((v.Callable(one, item) for one in methods if one is not None), value)
        if isinstance(value, v.Callable | v.Class) and all(name for name, _ in named):
            found.append(replace(item, value=replace(value, preset=(*value.preset, *preset))))
        else:
            found.append(replace(item, value=innermost(value, call)))
    return tuple(found)


def _instantiate(call: ast.Call, frame: Frame) -> Alternatives:
    """Hydra's `instantiate(cfg.group)`: the class that the group's `_target_` names, made with the group's settings."""
    found: list[Alternative] = []
    made = ast.copy_location(ast.Call(call.func, call.args[1:], call.keywords), call)
    for item in frame.evaluate(call.args[0]):
        path = item.value.path if isinstance(item.value, v.Namespace) else ()
        targets = frame.evaluator.options.in_files((*path, "_target_"), frame.script) if path else []
        if not targets:
            return (Alternative(v.Unknown(f"the class that {describe(call.args[0])} names")),)
        for target in {str(one.value): one for one in targets}.values():
            mark = Mark(target.file, target.line, f"'_target_' is {target.value}")
            for value in frame.evaluator.dotted(str(target.value), frame.module):
                if isinstance(value.value, v.Class | v.Callable):
                    built = calls.call_value(value, made, frame)
                    doubt = "the arguments of the object come from a configuration file"
                    found.extend(one.noting(mark).doubting(doubt) for one in built)
                else:
                    found.append(Alternative(v.Unknown(f"{target.value} ({target.file}:{target.line})")))
    return tuple(found)


def drawn_numbers(kind: str, call: ast.Call, frame: Frame) -> Alternatives:
    """Random numbers; numbers drawn around something that the policy computed are a sample of the policy."""
    given = [*call.args, *(item.value for item in call.keywords if item.arg not in ("size", "shape"))]
    given = [one for one in given if last_name(one) not in ("size", "shape")]  # how many, not around what
    around = [item for one in given[:2] for item in frame.evaluate(one)]
    takes_parameters = kind in ("normal", "other") and not last_name(call.func).endswith("_like")
    if takes_parameters and any(isinstance(item.value, v.Computed | v.Action) for item in around):
        unknown = [item for item in around if isinstance(item.value, v.Unknown) and not item.value.is_neutral]
        return (Alternative(v.Action("sampled", call, frame, True)), *unknown)
    return (Alternative(v.Noise(kind, call, frame)),)


def _cast(name: str, call: ast.Call, frame: Frame) -> Alternatives:
    found: list[Alternative] = []
    for item in frame.evaluate(call.args[0]):
        value = item.value
        if isinstance(value, v.KnownValue) and isinstance(value.value, str | int | float):
            made = cast(name, value.value)
            unread = v.Unknown(describe(call), is_neutral=True)
            found.append(replace(item, value=unread if made is MISSING else v.KnownValue(made)))
        else:
            is_kept = isinstance(value, v.Action | v.Computed | v.Noise | v.Unknown)
            found.extend([item] if is_kept else combine([(item,)], call, frame))
    return tuple(found)


# Methods.


def external_method(
    name: str, base: Alternative, call: ast.Call, function: ast.Attribute, frame: Frame
) -> Alternatives:
    """A call of something external, or of a method of an external base class (`super().predict(...)`)."""
    kind, separator, method = name.rpartition("().")
    if not separator:
        return external_call(name, call, frame)
    fact = find_actor(kind, method)
    return by_fact(fact, base.value, call, frame) if fact else primitive_method(base, call, function, frame)


def call_object(value: v.ExternalObject, call: ast.Call, frame: Frame) -> Alternatives:
    """What calling an object of a library gives back: a network answers, noise layers draw, agents act."""
    fact = find_actor(value.name, "__call__")
    if fact is not None:
        return by_fact(fact, value, call, frame)
    if is_noise_layer(value.name):
        return (Alternative(v.Noise("other", call, frame)),)
    if value.name.startswith("?"):  # a method of something unknown, taken as a function
        return (Alternative(v.Unknown(f"{value.name}()")),)
    if is_deterministic_function(value.name.split("()")[0]):
        is_layer = value.name.rsplit(".", 1)[-1][:1].isupper()
        return computed(call, frame, is_network=is_layer)
    return (Alternative(v.ExternalObject(f"{value.name}()", call, frame)),)


def primitive_method(
    base: Alternative, call: ast.Call, function: ast.Attribute, frame: Frame
) -> Alternatives:
    """What a method gives back that no class of the repository defines, or whose receiver is not known."""
    value, name = base.value, function.attr
    kind = value.name if isinstance(value, v.ExternalObject | v.External) else ""
    if isinstance(value, v.Instance | v.SuperOf):
        kind = next(iter(classes.external_bases(value.info)), "")
    fact = find_actor(kind, name) if kind else None
    if fact is not None:
        return by_fact(fact, value, call, frame)
    if name in ("parse_args", "parse_known_args"):
        return (
            Alternative(v.Namespace(value.frame.module if isinstance(value, v.ExternalObject) else None)),
        )
    if name == "run" and "sess" in describe(function.value).lower() and call.args:
        return frame.evaluate(call.args[0])
    is_distribution = bool(kind and DISTRIBUTION.search(kind.rsplit(".", 1)[-1]))
    if name in DRAWS:
        return _draw(base, kind, call, function, frame, is_distribution=is_distribution)
    if name == "mode":
        return (Alternative(v.Action("argmax", call, frame, True)),)
    if name in MAXIMA:
        return (_maximum(base, function.value, call, frame),)
    is_named = DISTRIBUTION.search(last_name(function.value)) and isinstance(
        value, v.Unknown | v.ExternalObject
    )
    if name == "mean" and is_named and not call.args and not call.keywords:
        doubt = f"what {describe(function.value)} is cannot be read; it is named like a distribution"
        return (Alternative(v.Action("argmax", call, frame, True)).doubting(doubt),)
    if name in RANKINGS and isinstance(value, v.Unknown | v.ExternalObject | v.Computed | v.External):
        return (Alternative(v.ExternalObject(name, call, frame)),)
    receiver = kind or describe(function.value)
    is_generator = re.search(r"random|rng|generator", receiver, re.IGNORECASE)
    rule = draw_of_function(f"numpy.random.{name}", call) if is_generator else None
    if rule is not None:
        return (Alternative(v.Action(rule, call, frame, rule == "sampled")),)
    drawn = noise_kind(f"{kind}.{name}") if kind else None
    drawn = drawn or (noise_kind(f"torch.random.{name}") if name.endswith("_") else None)
    if drawn is None and re.search(r"rng|np_random|random_state|generator", receiver, re.IGNORECASE):
        drawn = noise_kind(f"numpy.random.{name}")
    if drawn is not None:
        return drawn_numbers(drawn, call, frame)
    if isinstance(value, v.Noise):
        return (base,)
    if isinstance(value, v.Computed):
        return computed(call, frame, (base,))
    if SHAPING.search(name):
        through = _passes_through(call, frame)
        if through:
            return through
    if name in calls.SAME_OBJECT:
        is_super = isinstance(value, v.SuperOf) and value.receiver is not None
        return (value.receiver,) if is_super else (base,)  # type: ignore[union-attr, return-value]
    if name in calls.OBSERVING and "env" in describe(function.value).lower():
        return (Alternative(v.Computed(call, frame, is_observed=True)),)
    is_library = bool(kind) and not is_distribution and not isinstance(value, v.Instance)
    if is_library and is_deterministic_function(kind.split("()")[0]):
        return computed(call, frame, is_network=name in ("apply", "forward", "predict"))
    if isinstance(value, v.Unknown | v.ExternalObject):
        found = calls.by_name(name, call, frame)
        if not any(isinstance(item.value, v.Action) for item in found):
            found = _by_flag(call, frame) or found
        if found:
            return found
    if _BEST.search(name):
        doubt = f"{describe(call.func)}() cannot be read; it is taken at its name"
        return (Alternative(v.Action("argmax", call, frame, True)).doubting(doubt),)
    if isinstance(value, v.Unknown | v.ExternalObject):
        if isinstance(value, v.ExternalObject) and not value.name.startswith("?"):
            return (Alternative(v.ExternalObject(f"{value.name}().{name}", call, frame)),)
        if value == RECORDED:
            return (base,)
        text = value.text if isinstance(value, v.Unknown) else value.name
        is_data = isinstance(value, v.Unknown) and value.is_neutral
        return (Alternative(v.Unknown(f"{text}.{name}()", is_neutral=is_data)),)
    return (Alternative(v.ExternalObject(f"{kind}().{name}" if kind else f"?.{name}", call, frame)),)


def _draw(
    base: Alternative,
    kind: str,
    call: ast.Call,
    function: ast.Attribute,
    frame: Frame,
    *,
    is_distribution: bool,
) -> Alternatives:
    """`.sample()`: of a distribution the policy's draw, of a space a random action, of a buffer neither."""
    name = last_name(function.value)
    chooser = table("functions")["choosers"].get(kind.rsplit(".", 1)[-1])
    if chooser is not None:
        return (Alternative(v.Action(chooser, call, frame)),)
    if is_distribution or isinstance(base.value, v.Instance):
        return (Alternative(v.Action("sampled", call, frame, True)),)
    if re.search(r"space$", name, re.IGNORECASE) or ".spaces." in kind:
        return (Alternative(v.Action("random", call, frame)),)
    if name and _NOT_A_POLICY.search(name):
        return (Alternative(v.Unknown(describe(call))),)
    item = Alternative(v.Action("sampled", call, frame, True))
    is_named = isinstance(base.value, v.Computed) or DISTRIBUTION.search(name) or DISTRIBUTION.search(kind)
    return (item if is_named else item.doubting(f"what {describe(function.value)} is cannot be read"),)


def by_fact(fact: Fact, value: object, call: ast.Call, frame: Frame) -> Alternatives:
    """The action of an object of a dependency, by what is known about it."""
    mark = Mark(frame.module.path, call.lineno, f"{fact.name}.{fact.method}: {fact.source}")
    if fact.rule is not None:
        return (Alternative(v.Action(fact.rule, call, frame, True), marks=(mark,)),)
    is_made = isinstance(value, v.ExternalObject) and value.name == fact.name
    if fact.flag_at == "constructor" and is_made:
        call, frame = value.call, value.frame  # type: ignore[attr-defined]
    if fact.flag is not None and fact.true and fact.false and (is_made or fact.flag_at == "call"):
        return flagged(fact, call, frame, mark)
    return (Alternative(v.Unknown(describe(call)), marks=(mark,)),)


def _by_flag(call: ast.Call, frame: Frame) -> Alternatives:
    """The action of an object that cannot be read, by a flag that says it: `generate(x, do_sample=False)`."""
    given = {keyword.arg for keyword in call.keywords}
    fact = next((one for one in facts("flags") if one.flag in given), None)
    if fact is None:
        return by_text_settings(call, frame)
    doubt = f"{describe(call.func)}() cannot be read; {fact.flag}= is taken at its word"
    said = calls.argument(call, fact.flag, None)
    if fact.flag == "do_sample" and isinstance(said, ast.Constant):
        rule = fact.true if said.value else fact.false  # the same for everyone who comes by
        return (Alternative(v.Action(str(rule), call, frame, True)).doubting(doubt),)
    mark = Mark(frame.module.path, call.lineno, f"{fact.flag}=: {fact.source}")
    return tuple(item.doubting(doubt) for item in flagged(fact, call, frame, mark))


def by_text_settings(call: ast.Call, frame: Frame) -> Alternatives:
    """How a language model draws, by the settings that it is handed: `generate(x, SamplingParams(temperature=0))`."""
    for item in (one for given in arguments_of(call) for one in frame.evaluate(given)):
        value = item.value
        name = value.name.rsplit(".", 1)[-1] if isinstance(value, v.ExternalObject) else ""
        fact = next((one for one in facts("texts") if one.name == name), None)
        if fact is not None and isinstance(value, v.ExternalObject):
            mark = Mark(frame.module.path, call.lineno, f"{fact.name}: {fact.source}")
            return tuple(one.after(item) for one in flagged(fact, value.call, value.frame, mark))
    return ()


def flagged(fact: Fact, call: ast.Call, frame: Frame, mark: Mark) -> Alternatives:
    """Two actions, one for each value of the flag that a fact names; the call or the fact's default decides."""
    flag, default = fact.flag, fact.default
    given = calls.argument(call, flag, fact.flag_position)
    if given is None and (default is None or any(item.arg is None for item in call.keywords)):
        return (Alternative(v.Unknown(f"the flag {flag} of {describe(call.func)}"), marks=(mark,)),)
    test: ast.expr = given if given is not None else ast.copy_location(ast.Constant(bool(default)), call)
    if isinstance(test, ast.Constant):
        origin, said = "argument", f"{flag}={describe(given)} passed at the call"
        if given is None:
            origin, said = "default", f"default argument {flag}={default} of the library"
        note = Mark(frame.module.path, test.lineno, said)
        frame.cache[test] = (Alternative(v.KnownValue(test.value), marks=(note,), origin=origin),)
    return tuple(
        Alternative(v.Action(rule, call, frame, rule == "sampled"), (v.Guard(test, holds, frame),), (mark,))
        for holds, rule in ((True, fact.true), (False, fact.false))
        if rule is not None
    )
