"""Attributes: of instances, classes, modules, parsed options and environments.

An instance's attribute is what its constructor was given, in the frame of that construction, so that two objects of
one class (a runner for training, a runner for test) are kept apart.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from gapfloor.audit.interpreter import classes, operators
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.facts import pattern, words
from gapfloor.audit.interpreter.options import field_of, is_settings_class
from gapfloor.audit.interpreter.reaching_definitions import conditions, definitions_in, stores_in
from gapfloor.audit.interpreter.values import Alternative, Frame, Mark, describe
from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, last_name, own_nodes, place_of

Alternatives = tuple[Alternative, ...]
_SETTINGS = pattern("settings")
INNER_ENVIRONMENT = frozenset({"env", "venv", "envs", "unwrapped", "vec_env", "gym_env"})
SETTINGS_MAKERS = words("settings_makers")
SHAPES = frozenset({"shape", "size", "ndim", "dtype", "device", "dim", "numel"})
_CENTRES = frozenset({"mean", "mode", "loc"})


def attribute(item: Alternative, name: str, node: ast.AST, frame: Frame) -> Alternatives:
    """The alternatives of `item.name`."""
    value = item.value
    match value:
        case v.Module():
            return frame.evaluator.global_name(value.info, name)
        case v.External():
            if name == "FLAGS" or (value.name, name) == ("wandb", "config"):
                return (Alternative(v.Namespace(module=frame.module)),)
            if name in _CENTRES and "()" in value.name:
                return (Alternative(v.Action("argmax", node, frame, True)).doubting(*_unread(value.name)),)
            return frame.evaluator.dotted(f"{value.name}.{name}", frame.module)
        case v.Instance():
            return _of_instance(item, value, name, node, frame)
        case v.Class():
            method = classes.method(value.info, name)
            if method is not None:
                receiver = item if method.has_decorator("classmethod") else None
                return (Alternative(v.Callable(method, receiver, value.parent)),)
            found = _class_level(value.info, name)
            return found or (Alternative(v.Unknown(f"{value.info.name}.{name}")),)
        case v.SuperOf():
            start = value.info
            if value.receiver and isinstance(value.receiver.value, v.Instance):
                start = value.receiver.value.info
            method = classes.method(start, name, after=value.info)
            if method is not None:
                return (Alternative(v.Callable(method, value.receiver)),)
            bases = classes.external_bases(value.info)
            return (Alternative(v.External(f"{bases[0] if bases else 'object'}().{name}")),)
        case v.Namespace():
            return setting(name, value, node, frame)
        case v.Environment():
            # Spaces and specifications of an environment are fixed.
            return (item,) if name in INNER_ENVIRONMENT else (Alternative(v.Computed(node, frame)),)
        case v.Mapping() if name in value.items:
            return value.items[name].evaluate(name)
        case v.Action() | v.Computed() | v.Noise() | v.Sequence():
            # The shape of an array says nothing about how its numbers were chosen.
            return (Alternative(v.Computed(node, frame)),) if name in SHAPES else (item,)
        case v.ExternalObject():
            return _of_external_object(value, name, node, frame)
        case v.Unknown():
            if name in _CENTRES:
                return (Alternative(v.Action("argmax", node, frame, True)).doubting(*_unread(value.text)),)
            if _SETTINGS.search(value.text):
                return setting(name, v.Namespace(), node, frame)
            is_space = name.endswith("_space") or name.startswith(("num_", "n_", "max_", "min_"))
            return (Alternative(v.Unknown(f"{value.text}.{name}", is_neutral=value.is_neutral or is_space)),)
    return (Alternative(v.Unknown(f"{describe(node)}")),)


def _unread(text: str) -> tuple[str, ...]:
    return (f"what {text} is cannot be read; its name and use say that it is a distribution",)


def _of_external_object(value: v.ExternalObject, name: str, node: ast.AST, frame: Frame) -> Alternatives:
    last = value.name.rsplit(".", 1)[-1]
    if operators.is_ranking(value):
        return (Alternative(operators.part_of_ranking(value, is_place=name in ("indices", "arg"))),)
    if last in SETTINGS_MAKERS:
        return setting(name, v.Namespace(), node, frame)
    if name in _CENTRES:
        found = Alternative(v.Action("argmax", node, frame, True))
        return (found if classes.DISTRIBUTION.search(last) else found.doubting(*_unread(value.name)),)
    return (Alternative(v.External(f"{value.name}().{name}")),)


def setting(name: str, space: v.Namespace, node: ast.AST, frame: Frame) -> Alternatives:
    """The setting `name` of parsed options, at its default."""
    options, script = frame.evaluator.options, frame.script
    entry = options.given_entry(name)
    if entry is None and space.fields is not None:
        entry = field_of(space.fields, name)
    if entry is None and not space.path:
        entry = options.find(name, space.module)
    if entry is not None and not entry.has_default:
        # A required field gets its value from a configuration file.
        stated = options.from_files((name,), script)
        entry = stated if stated is not None and stated.has_default else entry
    if entry is None:
        path = (*space.path, name)
        if options.is_section(path):
            return (Alternative(v.Namespace(space.module, None, path)),)
        entry = options.from_files(path, script)
    if entry is None:
        return (Alternative(v.Unknown(f"args.{name}", is_neutral=True), origin="option"),)
    read = Mark(frame.module.path, getattr(node, "lineno", 0), f"option '{entry.name}' is read here")
    marks = (read, entry.mark)
    # A setting that the code itself overwrites after parsing has no default that one could rely on.
    outside = frame.evaluator.index.outside_assignments(name, script, but=entry.mark) if entry.module else ()
    is_known = entry.has_default and not outside
    value = v.KnownValue(entry.default) if is_known else v.Unknown(f"option '{entry.name}'", is_neutral=True)
    return (Alternative(value, marks=marks, origin="option"),)


def _class_level(info: ClassInfo, name: str) -> Alternatives:
    for base in classes.own(info):
        for definition in definitions_in(base.node).get(name, []):
            if definition.kind == "assign":
                mark = Mark(base.module.path, definition.statement.lineno, f"{base.name}.{name} by default")  # type: ignore[attr-defined]
                found = base.module.frame.evaluate(definition.expression)
                return tuple(
                    replace(item.noting(mark), origin="default") if item.origin == "literal" else item
                    for item in found
                )
    return ()


def _of_instance(
    item: Alternative, value: v.Instance, name: str, node: ast.AST, frame: Frame
) -> Alternatives:
    method = classes.method(value.info, name)
    if method is not None:
        if method.has_decorator("property", "cached_property"):
            return frame.enter(method, None, item).returns()
        receiver = None if method.has_decorator("staticmethod") else item
        bound = Alternative(v.Callable(method, receiver, value.init.parent if value.init else None))
        for module, other in frame.evaluator.index.outside_assignments(name, frame.script)[:1]:
            bound = Alternative(v.Unknown(f"{name}, replaced at {module.path}:{other.lineno}"))
        return (bound,)
    if name == "training" and classes.is_a(value.info, "network"):
        return (mode_of(frame),)
    if name in _CENTRES and classes.is_a(value.info, "distribution"):
        return (Alternative(v.Action("argmax", node, frame, True)),)
    if is_settings_class(value.info.node):
        return setting(name, v.Namespace(fields=value.info), node, frame)
    found = _assigned(item, value, name, frame)
    found = found or list(_class_level(value.info, name))
    if classes.is_a(value.info, "set by name") or (not found and _SETTINGS.search(value.info.name)):
        option = setting(name, v.Namespace(), node, frame)
        found.extend(one for one in option if isinstance(one.value, v.KnownValue))
    found.extend(_from_outside(name, frame, value))
    if not found and value.init is not None:
        found = [*_given_to_base(name, value.init)]
    if found:
        return tuple(found)
    base = next((one for one in classes.external_bases(value.info) if "." in one), None)
    unread: v.Value = v.External(f"{base}().{name}") if base else v.Unknown(f"{value.info.name}.{name}")
    return (Alternative(unread),)


def _given_to_base(name: str, init: Frame) -> Alternatives:
    """What `super().__init__(env=env, model=model)` hands to a base class outside the repository, by name."""
    for call in init.function.calls if init.function is not None else ():
        if last_name(call.func) == "__init__":
            given = next((one.value for one in call.keywords if one.arg == name), None)
            if given is not None:
                return init.evaluate(given)
    return ()


def _assigned(item: Alternative, value: v.Instance, name: str, frame: Frame) -> list[Alternative]:
    """What the class's own methods assign to `self.name`; the constructor's value in the constructor's frame."""
    found: list[Alternative] = []
    given = [(method, one) for method in classes.methods_of(value.info)
             for one in definitions_in(method.node).get(f"self.{name}", [])]  # fmt: skip
    for method, definition in given:
        if definition.kind == "augmented":
            continue
        home = _frame_of_method(item, value, method, frame)
        doubt = f"whether {method.name}() has set '{name}' before is not known"
        line = getattr(definition.statement, "lineno", 0)
        mark = Mark(method.module.path, line, f"{method.name} sets {name}")
        for one in frame.evaluator.defined_by(definition, home):
            is_late = method.name != "__init__" and isinstance(one.value, v.KnownValue)
            found.append(one.noting(mark).doubting(doubt) if is_late else one)
    if any(definition.kind == "augmented" for _, definition in given):
        found = [one for one in found if not isinstance(one.value, v.KnownValue)]
        found.append(Alternative(v.Unknown(f"self.{name}, which is counted", is_neutral=True)))
    real = [one for one in found if not (isinstance(one.value, v.KnownValue) and one.value.value is None)]
    return _with_method_stores(real or found, value, name, item, frame)


def _with_method_stores(
    found: list[Alternative], value: v.Instance, name: str, item: Alternative, frame: Frame
) -> list[Alternative]:
    """`self.agents.append(Agent())` and `self.table[key] = value` fill what the constructor left empty."""
    if not any(isinstance(one.value, v.Sequence | v.Mapping) for one in found):
        return found
    added = [
        (key, expression, _frame_of_method(item, value, method, frame))
        for method in classes.methods_of(value.info)
        for _, key, expression in stores_in(method.node).get(f"self.{name}", ())
    ]
    is_shared = len({id(home) for *_, home in added}) > 1
    result = []
    for one in found:
        held = one.value
        for key, expression, home in added:
            if is_shared and isinstance(held, v.Sequence):
                held = v.Unknown(f"self.{name}, which several methods fill")
            elif isinstance(held, v.Sequence | v.Mapping):
                held = operators.with_item(held, key, expression, home)
        result.append(replace(one, value=held))
    return result


def _frame_of_method(item: Alternative, value: v.Instance, method: FunctionInfo, frame: Frame) -> Frame:
    init = value.init
    if method.name == "__init__" and init is not None:
        # The constructor, or that of a base as the constructor calls it: super().__init__(...).
        known = next((one for one in (init, *init.children.values()) if one.function is method), None)
        if known is not None:
            return known
        for call in init.function.calls if init.function else ():
            if last_name(call.func) == "__init__":
                return init.enter(method, call, item)
    here = next((one for one in frame.chain() if one.function is method), None)
    return here if here is not None else method.module.frame.enter(method, None, item)


def _from_outside(name: str, frame: Frame, value: v.Instance) -> list[Alternative]:
    """What code outside the class assigns to an attribute of that name: `agent.greedy = True`."""
    found: list[Alternative] = []
    chain = frame.chain()
    for module, expression in frame.evaluator.index.outside_assignments(name, frame.script):
        function = module.functions.get(module.scope_of(expression))
        home = next((one for one in chain if one.scope is module.scope_of(expression)), None)
        if home is None:
            home = Frame(frame.evaluator, module, function) if function else module.frame
        mark = Mark(module.path, expression.lineno, f"'{name}' is set to {describe(expression)}")
        for one in home.evaluate(expression):
            origin = "argument" if one.origin == "literal" else one.origin
            doubt = f"whether '{name}' is set from outside before this call is not known"
            found.append(replace(one.noting(mark), origin=origin).doubting(doubt))
    return found


def mode_of(frame: Frame) -> Alternative:
    """Whether networks are in training mode: the last `.eval()` or `.train()` before the call, caller by caller."""
    chain = frame.chain()
    for here, inner in [*zip(chain, [*(one.call for one in chain[1:]), None], strict=True)][::-1]:
        end = place_of(inner) if inner is not None else 10**9
        switches = [
            node
            for node in own_nodes(here.scope)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if node.func.attr in ("eval", "train") and len(node.args) <= 1 and not node.keywords
            if place_of(node) < end
        ]
        if switches:
            last = switches[-1]
            is_on = last_name(last.func) == "train" and not (
                last.args and here.truth(last.args[0])[0] is False
            )
            mark = Mark(here.module.path, last.lineno, f"{describe(last)} sets the mode")
            if conditions(here.module, last, here.scope, inner):
                return Alternative(v.Unknown("the mode of a network", is_neutral=True), marks=(mark,))
            return Alternative(v.KnownValue(is_on), marks=(mark,), origin="argument")
    return Alternative(v.KnownValue(True), origin="default").doubting(
        "no call of eval() was found on the way"
    )
