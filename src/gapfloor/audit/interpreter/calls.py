"""Calls: binding arguments to parameters, functions, classes and methods of the repository, and matching by name."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from gapfloor.audit.interpreter import attributes, classes, library
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.facts import find_actor_by_call, pattern, words
from gapfloor.audit.interpreter.operators import combine
from gapfloor.audit.interpreter.options import MISSING, is_settings_class, literal
from gapfloor.audit.interpreter.values import Alternative, Frame, Mark, describe
from gapfloor.audit.reading.index import FunctionInfo, arguments_of, kept_on_node, last_name

Alternatives = tuple[Alternative, ...]
DEEPEST_FRAME = 22
MOST_CANDIDATES = 12
_ACTING = pattern("acting")
#: Methods of an environment that give observations, rewards and ends.
OBSERVING = words("observing")
#: Methods that change an object's place or mode, not what it is.
SAME_OBJECT = words("same_object")


def may_enter(function: FunctionInfo, frame: Frame) -> bool:
    """Whether a call can be followed: not too deep, and not the function's own recursion."""
    if frame.depth > DEEPEST_FRAME:
        return False
    return sum(one.function is function for one in frame.chain()) < 2


def bind(
    function: FunctionInfo,
    call: ast.Call | None,
    caller: Frame,
    receiver: Alternative | None,
    parent: Frame | None,
    preset: tuple[tuple[str, v.Binding], ...] = (),
) -> Frame:
    """A frame for calling `function` at `call`: positional, keyword, starred and default arguments.

    Without a call the arguments are not known, except for `preset` ones; parameters with a default keep it.
    """
    frame = Frame(caller.evaluator, function.module, function, parent=parent, caller=caller, call=call)
    frame.depth = caller.depth + 1
    # The conditions of the receiver hold for the call's result; inside, `self` is just the object.
    frame.receiver = Alternative(receiver.value) if receiver is not None else None
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    is_bound = function.owner is not None and not function.has_decorator("staticmethod")
    names = [arg.arg for arg in positional[1 if is_bound and positional else 0 :]]
    known = [*names, *(arg.arg for arg in arguments.kwonlyargs)]
    extra: dict[str, v.Binding] = {}
    is_starred = False
    numbered = [binding for name, binding in preset if name.isdigit()]
    given = [(name, binding) for name, binding in preset if not name.isdigit()]
    frame.bindings.update(zip(names, numbered, strict=False))
    if call is not None:
        for name, argument in zip(names[len(numbered) :], call.args, strict=False):
            if isinstance(argument, ast.Starred):
                is_starred = True
                break
            frame.bindings[name] = v.Binding(argument, caller)
        given += keyword_bindings(call, caller)
    for key, binding in given:
        if key in known:
            frame.bindings[key] = binding
        elif key:
            extra[key] = binding
        else:
            is_starred = True
    home = parent if parent is not None else function.module.frame
    defaults: list[tuple[str, ast.expr | None]] = [
        *zip([arg.arg for arg in positional][::-1], list(arguments.defaults)[::-1], strict=False),
        *zip([arg.arg for arg in arguments.kwonlyargs], arguments.kw_defaults, strict=True),
    ]
    # What is spread by `**` at a call that acts is most likely such a flag; settings of a whole object seldom are.
    is_hidden = any(not key for key, _ in given) and function.name != "__init__"
    is_hidden = is_hidden or _is_configurable(function)
    for name, default in defaults:
        if name not in frame.bindings and default is not None:
            # Behind an argument list that cannot be read, a default may be overridden; flags seldom are.
            is_flag = isinstance(default, ast.Constant) and isinstance(default.value, bool)
            is_unread = is_hidden or (is_starred and not is_flag)
            kept = v.Binding(default, home, is_default=True, is_unsure=is_starred)
            frame.bindings[name] = v.Binding(None, None) if is_unread else kept
    if arguments.kwarg is not None and (call is not None or extra):
        node = ast.copy_location(ast.Name(arguments.kwarg.arg, ast.Load()), arguments.kwarg)
        frame.bindings[arguments.kwarg.arg] = v.Binding(node, frame)
        frame.cache[node] = (Alternative(v.Mapping(extra, is_open=is_starred)),)
    return frame


def _is_configurable(function: FunctionInfo) -> bool:
    """Whether a function's defaults can be set from a gin file, so that they say nothing."""
    of_class = function.owner.node.decorator_list if function.owner is not None else []
    return function.has_decorator("configurable") or any(last_name(one) == "configurable" for one in of_class)


def keyword_bindings(call: ast.Call, frame: Frame) -> list[tuple[str, v.Binding]]:
    """The keywords of a call; what is spread by `**` is read where it is a mapping, else it has no name."""
    found: list[tuple[str, v.Binding]] = []
    for keyword in call.keywords:
        if keyword.arg is not None:
            found.append((keyword.arg, v.Binding(keyword.value, frame)))
            continue
        spread = [one.value for one in frame.evaluate(keyword.value)]
        if len(spread) == 1 and isinstance(spread[0], v.Mapping):
            found.extend(spread[0].items.items())
        if len(spread) != 1 or not isinstance(spread[0], v.Mapping) or spread[0].is_open:
            found.append(("", v.Binding(None, None)))
    return found


def argument(call: ast.Call, name: str | None, position: int | None) -> ast.expr | None:
    """The expression given for a parameter, by keyword or by position."""
    named = next((one.value for one in call.keywords if name is not None and one.arg == name), None)
    if named is not None:
        return named
    return call.args[position] if position is not None and len(call.args) > position else None


def fits(function: FunctionInfo, call: ast.Call) -> bool:
    """Whether a function could take the arguments of a call at all."""
    arguments = function.node.args
    names = [arg.arg for arg in [*arguments.posonlyargs, *arguments.args]]
    if function.owner is not None and not function.has_decorator("staticmethod"):
        names = names[1:]
    if arguments.vararg is None and len(call.args) > len(names):
        return False
    known = {*names, *(arg.arg for arg in arguments.kwonlyargs)}
    given = {keyword.arg for keyword in call.keywords}
    if arguments.kwarg is None and any(name is not None and name not in known for name in given):
        return False
    if None in given or any(isinstance(item, ast.Starred) for item in call.args):
        return True
    required = names[: len(names) - len(arguments.defaults)]
    return all(name in given for name in required[len(call.args) :])


def evaluate_call(call: ast.Call, frame: Frame) -> Alternatives:
    """What a call gives back."""
    function = call.func
    if isinstance(function, ast.Attribute):
        bases = frame.evaluate(function.value)
        return tuple(one.after(base) for base in bases for one in _method_of(base, call, function, frame))
    name = function.id if isinstance(function, ast.Name) else ""
    if name == "super":
        for home in (frame, frame.parent):
            if home is not None and home.function is not None and home.function.owner is not None:
                return (Alternative(v.SuperOf(home.function.owner, home.receiver)),)
    if name == "getattr" and len(call.args) >= 2:
        return _getattr(call, frame)
    targets = frame.evaluate(function)
    return tuple(one.after(target) for target in targets for one in call_value(target, call, frame))


def _getattr(call: ast.Call, frame: Frame) -> Alternatives:
    found: list[Alternative] = []
    for name in frame.evaluate(call.args[1]):
        if not isinstance(name.value, v.KnownValue) or not isinstance(name.value.value, str):
            return (Alternative(v.Unknown(describe(call))),)
        for item in frame.evaluate(call.args[0]):
            inner = attributes.attribute(item, name.value.value, call, frame)
            found.extend(one.after(item).after(name).noting(*name.marks) for one in inner)
    return tuple(found)


def call_value(target: Alternative, call: ast.Call, frame: Frame) -> Alternatives:
    """What calling one possible value gives back."""
    value = target.value
    match value:
        case v.Callable():
            return _call_function(value, call, frame)
        case v.Class():
            return construct(value, call, frame)
        case v.Instance():
            for name in ("__call__", "forward", "call"):
                method = classes.method(value.info, name)
                if method is not None:
                    bound = v.Callable(method, target, value.init.parent if value.init else None)
                    return _call_function(bound, call, frame)
        case v.External():
            return library.external_call(value.name, call, frame)
        case v.ExternalObject():
            return library.call_object(value, call, frame)
        case v.Action() | v.Computed() | v.Noise():
            # A bound method of an action or of something computed; a network that was made elsewhere.
            return library.computed(call, frame, (target,))
        case v.Unknown():
            fact = find_actor_by_call(value.text)
            if fact is not None:
                doubt = f"what {value.text} is was told by the method's name"
                return tuple(one.doubting(doubt) for one in library.by_fact(fact, value, call, frame))
            return (Alternative(v.Unknown(f"{value.text}()")),)
    return (Alternative(v.Unknown(describe(call))),)


def _call_function(value: v.Callable, call: ast.Call | None, frame: Frame) -> Alternatives:
    function = value.function
    if not may_enter(function, frame):
        return (Alternative(v.Unknown(f"{function.name}(), which is nested too deeply")),)
    is_left = function.owner is not None and (is_stub(function) or function.has_decorator("abstractmethod"))
    if is_left or function.has_decorator("contextmanager"):
        # What a base class leaves to its subclasses.
        found = by_name(function.name, call, frame) if is_left and call is not None else ()
        return found or (Alternative(v.Unknown(f"{function.name}()")),)
    inner = frame.enter(function, call, value.receiver, value.parent, value.preset)
    return inner.returns()


def is_stub(function: FunctionInfo) -> bool:
    """Whether a function only documents, refuses or passes."""
    if isinstance(function.node, ast.Lambda):
        return False
    return all(
        isinstance(statement, ast.Raise | ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in function.node.body
    )


def construct(value: v.Class, call: ast.Call, frame: Frame) -> Alternatives:
    """The object that calling a class makes; an environment stays one through its wrappers."""
    info = value.info
    init = classes.method(info, "__init__")
    if classes.is_a(info, "environment"):
        for given in arguments_of(call):
            inner = environments_of(given, frame)
            if inner:
                return tuple(
                    replace(one, value=replace(one.value, wrappers=(*one.value.wrappers, info)))
                    for one in inner
                    if isinstance(one.value, v.Environment)
                )
        if any(re.fullmatch(r"v?envs?|vec_env|environment", one.arg) for one in (init.named if init else ())):
            return (Alternative(v.Unknown(f"{info.name}(env)")),)
        return (Alternative(v.Environment(info.name, call, frame, info)),)
    if is_settings_class(info.node) and init is None:
        is_given = bool(call.args or call.keywords)
        return (Alternative(v.Instance(info, call) if is_given else v.Namespace(fields=info)),)
    made = v.Instance(info, call)
    if init is not None and may_enter(init, frame):
        inner_frame = bind(init, call, frame, Alternative(made), value.parent, value.preset)
        made = replace(made, init=inner_frame)
        inner_frame.receiver = Alternative(made)
    return (Alternative(made),)


def environments_of(given: ast.expr | None, frame: Frame) -> Alternatives:
    """The environments that an expression can be, or that a function it names can make."""
    return tuple(one for item in frame.evaluate(given) for one in as_environments(item, frame))


def as_environments(item: Alternative, frame: Frame, depth: int = 4) -> list[Alternative]:
    """The environments in a value: itself, in a list of makers, or made by a function."""
    value = item.value
    if isinstance(value, v.Environment):
        return [item]
    if depth == 0:
        return []
    held: list[Alternative] = []
    if isinstance(value, v.Sequence):
        held = [one for element in value.elements[:2] for one in value.frame.evaluate(element)]
    elif isinstance(value, v.Callable) and may_enter(value.function, frame):
        frame = frame.enter(value.function, None, value.receiver, value.parent, value.preset)
        held = [one for one in frame.returns() if isinstance(one.value, v.Environment | v.Callable)]
    return [one.after(item) for inner in held for one in as_environments(inner, frame, depth - 1)]


def _method_of(base: Alternative, call: ast.Call, function: ast.Attribute, frame: Frame) -> Alternatives:
    """What the method of one possible receiver gives back."""
    value, name = base.value, function.attr
    if name in attributes.SHAPES and isinstance(value, v.Action | v.Noise):
        return (Alternative(v.Computed(call, frame)),)
    if isinstance(value, v.Action) and name in ("mean", "median") and value.rule == "sampled":
        # As planners by cross-entropy take it.
        return (Alternative(v.Unknown("an average over several draws")),)
    if isinstance(value, v.Action) and name not in library.DRAWS | library.MAXIMA:
        given = [frame.evaluate(one) for one in call.args]
        random = [one for one in given if any(isinstance(item.value, v.Noise | v.Action) for item in one)]
        return combine([(base,), *random], call, frame) if random else (base,)
    if isinstance(value, v.Mapping) and name in ("get", "pop") and call.args:
        return _get(value, call, frame)
    if isinstance(value, v.Environment):
        if name in OBSERVING:
            return (Alternative(v.Computed(call, frame, is_observed=True)),)
        return (Alternative(v.Unknown(describe(call), is_neutral=name.startswith(("get", "observation")))),)
    if isinstance(value, v.Sequence | v.Mapping) and (
        name in ("values", "items") or library.SHAPING.search(name)
    ):
        return (base,)
    if isinstance(value, v.KnownValue) and value.value is not None:
        return (base,) if name in SAME_OBJECT else (Alternative(v.Unknown(describe(call), is_neutral=True)),)
    is_own = isinstance(value, v.Instance) and classes.method(value.info, name) is not None
    if name in SAME_OBJECT and isinstance(value, v.Instance) and not is_own:
        return (base,)
    is_applied = name == "apply" and isinstance(value, v.Instance) and not is_own
    if is_applied and len(call.args) == 1 and not call.keywords:
        return (base,)  # torch: `network.apply(initialize)` is the network
    if is_applied and len(call.args) > 1 and not any(keyword.arg == "method" for keyword in call.keywords):
        return call_value(base, _without_parameters(call), frame)
    found: list[Alternative] = []
    opaque = (v.Unknown, v.ExternalObject, v.Computed, v.Noise, v.Sequence, v.Mapping)
    for target in () if isinstance(value, opaque) else attributes.attribute(base, name, function, frame):
        if isinstance(value, v.External):
            found.extend(one.after(target) for one in call_value(target, call, frame))
        elif isinstance(target.value, v.External):
            found.extend(library.external_method(target.value.name, base, call, function, frame))
        elif not isinstance(target.value, v.Unknown):
            found.extend(one.after(target) for one in call_value(target, call, frame))
        elif isinstance(value, v.Instance) and is_own:
            found.append(target)  # apart from what the class says, something that cannot be read
    is_drawn = any(isinstance(item.value, v.Action) for item in found)
    if isinstance(value, v.Instance) and classes.is_a(value.info, "distribution") and not is_drawn:
        found = [] if name in library.DRAWS | library.MAXIMA else found
    return tuple(found) if found else library.primitive_method(base, call, function, frame)


@kept_on_node
def _without_parameters(call: ast.Call) -> ast.Call:
    """`module.apply(parameters, x)` of flax as the call `module(x)`."""
    given = [keyword for keyword in call.keywords if keyword.arg not in ("rngs", "mutable")]
    return ast.copy_location(ast.Call(call.func, call.args[1:], given), call)


def _get(value: v.Mapping, call: ast.Call, frame: Frame) -> Alternatives:
    key = literal(call.args[0])
    if isinstance(key, str) and key in value.items:
        return value.items[key].evaluate(key)
    # An empty dictionary is there to be filled, e.g. by exec().
    is_open = value.is_open or key is MISSING or not value.items
    rest: Alternatives = (Alternative(v.Unknown(describe(call))),) if is_open else ()
    if len(call.args) > 1:
        return (*v.Binding(call.args[1], frame, is_default=True).evaluate(str(key)), *rest)
    return rest or (Alternative(v.KnownValue(None), origin="literal"),)


def by_name(name: str, call: ast.Call, frame: Frame) -> Alternatives:
    """Every method of that name that the script can load, where the receiver's class is not known.

    What agrees among all of them is likely; it is never proved.
    """
    if not _ACTING.search(name):
        return ()
    reach = frame.evaluator.index.reach(frame.script)
    fitting = [
        function
        for function in frame.evaluator.index.functions_by_name.get(name, [])
        if function.owner is not None
        and not classes.is_a(function.owner, "environment")
        and may_enter(function, frame)
        and fits(function, call)
        and not is_stub(function)
    ]
    near = [item for item in fitting if item.module.path in reach] or fitting
    found: list[Alternative] = []
    doubt = f"the object whose {name}() is called is not known; every class with that method was considered"
    for function in near[:MOST_CANDIDATES]:
        assert function.owner is not None
        inner = frame.enter(function, call, Alternative(v.Instance(function.owner)))
        mark = Mark(function.module.path, function.node.lineno, f"candidate: {function.owner.name}.{name}")
        useful = (v.Action, v.Sequence, v.Mapping, v.Computed)
        found += [
            one.noting(mark).doubting(doubt) for one in inner.returns() if isinstance(one.value, useful)
        ]
    return tuple(found)
