"""The places where an environment is stepped, and the chains of calls that lead to them from scripts."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gapfloor.audit.interpreter import calls, classes, library
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.facts import Fact, facts, find_loops, pattern
from gapfloor.audit.interpreter.reaching_definitions import never_runs
from gapfloor.audit.interpreter.values import Alternative, Frame
from gapfloor.audit.reading.index import (
    ClassInfo,
    FunctionInfo,
    ModuleInfo,
    arguments_of,
    is_unit_test,
    kept_on_node,
    last_name,
    names_in,
    own_nodes,
    parent_of,
)

MOST_CHAINS = 40
MOST_EXPANSIONS = 300
DEEPEST_CHAIN = 9
_NOT_AN_ENVIRONMENT = pattern("not_an_environment")
_ENVIRONMENT_NAME = re.compile(r"env|game|world|task|maze|^e$|simulator|arena", re.IGNORECASE)
_TEXT_SETTING = pattern("text_setting")
_TEST_LIBRARIES = frozenset({"absl.testing.absltest", "unittest", "unittest.TestCase", "pytest"})


@dataclass(frozen=True, eq=False, slots=True)
class _Place:
    """A call, with the function whose body holds it, and what it hands on."""

    module: ModuleInfo
    function: FunctionInfo | None
    call: ast.Call
    handed: ast.expr | None = None


@dataclass(frozen=True, eq=False)
class Site(_Place):
    """One place in the text where an environment is stepped, or handed to a library's loop."""

    receiver: ast.expr | None = None
    action: ast.expr | None = None
    fact: Fact | None = None

    @property
    def is_text(self) -> bool:
        """Whether a language model writes an answer here: one call is a whole episode."""
        return self.action is self.call


@dataclass(eq=False)
class Play:
    """A site reached by one chain of calls: which environment is played, and by which actions."""

    site: Site
    frame: Frame
    environments: list[Alternative]
    actions: tuple[Alternative, ...]
    script: str
    is_reached: bool
    doubts: frozenset[str]


class SiteFinder:
    """Finds sites and the chains of calls to them, for one evaluator."""

    def __init__(self, evaluator: Evaluator, *, only: str | None = None) -> None:
        self.evaluator = evaluator
        self.only = only
        self.unfinished: list[str] = []
        """Scripts that were not followed to the end because the budget ran out."""
        self._places: dict[str, list[_Place]] = defaultdict(list)
        self._modules = [
            module
            for module in evaluator.index.modules.values()
            if not is_unit_test(module.path) and not _TEST_LIBRARIES & set(module.imports.values())
        ]
        for module in self._modules:
            for call, function in module.calls:
                self._enter(module, call, function)

    def _enter(self, module: ModuleInfo, call: ast.Call, function: FunctionInfo | None) -> None:
        name = last_name(call.func)
        if isinstance(call.func, ast.Name) and name in module.imports:
            name = module.imports[name].rsplit(".", 1)[-1]
        if isinstance(call.func, ast.Attribute) and name == "remote":
            name = last_name(call.func.value)
        self._places[name].append(_Place(module, function, call))
        known = self.evaluator.index.functions_by_name
        for given in arguments_of(call):
            for one in given.elts if isinstance(given, ast.List | ast.Tuple) else [given]:
                if isinstance(one, ast.Name | ast.Attribute) and last_name(one) in known:
                    self._places[last_name(one)].append(_Place(module, function, call, one))

    # Sites.

    def sites(self) -> list[Site]:
        """Every site of the repository, in the order of files and lines."""
        tails = {fact.name.rsplit(".", 1)[-1] for fact in facts("loops")}
        places = [(module, *place) for module in self._modules for place in module.calls]
        found = [site for place in places for site in self._sites_of(*place, tails)]
        return sorted(found, key=lambda site: (site.module.path, site.call.lineno))

    def _sites_of(
        self, module: ModuleInfo, call: ast.Call, function: FunctionInfo | None, tails: set[str]
    ) -> Iterator[Site]:
        owner = function.owner if function is not None else None
        # What an environment's own methods step is an inner environment.
        is_inside = owner is not None and classes.is_a(owner, "environment")
        name = last_name(call.func)
        mapped = call.func.args[0] if isinstance(call.func, ast.Call) and call.func.args else None
        if isinstance(mapped, ast.Attribute) and mapped.attr in ("step", "step_env"):
            yield Site(module, function, call, receiver=mapped.value, action=_action_argument(call))
        elif name == "generate" and _is_text(call) and (function is None or function.name != name):
            yield Site(module, function, call, action=call)
        elif isinstance(call.func, ast.Attribute) and not is_inside and (call.args or call.keywords):
            receiver, first = call.func.value, call.args[0] if call.args else None
            if name in ("step", "step_async", "act", "step_env"):
                if _may_be_environment(call, receiver, owner):
                    yield Site(module, function, call, receiver=receiver, action=_action_argument(call))
            elif name in ("send", "put") and isinstance(first, ast.Tuple) and len(first.elts) >= 2:
                # The action is sent to a worker process: `pipe.send(("step", action))`.
                kind = first.elts[0]
                is_step = isinstance(kind, ast.Constant) and kind.value == "step"
                yield from [Site(module, function, call, action=first.elts[1])] if is_step else []
            elif name == "send" and first is not None and re.search(r"conn|pipe|remote", last_name(receiver)):
                is_step = re.match(r"act", last_name(first)) is not None
                yield from [Site(module, function, call, action=first)] if is_step else []
        if name in tails:
            home = unbound(self.evaluator, function) if function else module.frame
            for item in home.evaluate(call.func):
                for fact in find_loops(item.value.name) if isinstance(item.value, v.External) else ():
                    yield Site(module, function, call, fact=fact)

    # Chains of calls.

    def plays(self) -> list[Play]:
        """Every site in every chain of calls that reaches it."""
        found: list[Play] = []
        for site in self.sites():
            for chain in self._chains(site.function):
                if self.evaluator.is_spent:
                    self.unfinished.append(site.module.path)
                    break
                self.evaluator.begin_chain()
                try:
                    found.extend(self._play(site, chain))
                except RecursionError:
                    self.unfinished.append(site.module.path)
        return found

    def _chains(self, function: FunctionInfo | None) -> list[list[tuple[_Place, FunctionInfo]]]:
        """The ways from scripts down to a function: each call with the function that it enters."""
        if function is None:
            return [[]]
        found: list[list[tuple[_Place, FunctionInfo]]] = []
        waiting: list[tuple[FunctionInfo, list[tuple[_Place, FunctionInfo]]]] = [(function, [])]
        expanded = 0
        while waiting and len(found) < MOST_CHAINS and expanded < MOST_EXPANSIONS:
            expanded += 1
            target, below = waiting.pop(0)
            inside = {one for _, one in below} | {target}
            places = [place for place in self._callers(target) if place.function not in inside]
            if not places or len(below) >= DEEPEST_CHAIN:
                found.append(below)
                continue
            for place in places[:MOST_CHAINS]:
                if place.function is None:
                    found.append([(place, target), *below])
                else:
                    waiting.append((place.function, [(place, target), *below]))
        return found

    def _callers(self, function: FunctionInfo) -> list[_Place]:
        name = function.name
        if name == "__init__" and function.owner is not None:
            name = function.owner.name
        if name in ("__call__", "forward", "<lambda>"):
            return []
        found = []
        for place in self._places.get(name, ()):
            if place.handed is None and not calls.fits(function, place.call):
                continue
            if place.module is not function.module:
                if function.outer is not None:
                    continue
                reach = self.evaluator.index.reach(place.module)
                if function.module.path not in reach and (
                    function.owner is None or isinstance(place.call.func, ast.Name)
                ):
                    continue
            called = place.call.func
            if function.owner is None and place.handed is None and isinstance(called, ast.Attribute):
                head = called.value
                is_module = isinstance(head, ast.Name) and head.id in place.module.imports
                if not is_module and called.attr != "remote":
                    continue  # a method of something, not this function
            is_plain = place.handed is None and isinstance(called, ast.Name)
            if function.owner is not None and is_plain and name != function.owner.name:
                continue
            found.append(place)
        return found

    def _play(self, site: Site, chain: list[tuple[_Place, FunctionInfo]]) -> Iterator[Play]:
        evaluator = self.evaluator
        first = chain[0][0].function if chain else site.function
        module = chain[0][0].module if chain else site.module
        if self.only is not None and self.only not in (module.path, site.module.path):
            return
        root = unbound(evaluator, first) if first is not None else module.frame
        frames = [root]
        for place, target in chain:
            entered = [one for frame in frames for one in self._enter_call(place, target, frame)]
            if not entered:
                return
            frames = entered[:4]
        # A framework calls what is decorated: sacred, hydra, click.
        is_reached = first is None or module.is_script or bool(getattr(first.node, "decorator_list", ()))
        for frame in frames:
            if never_runs(frame, site.call):
                continue
            play = self._at(site, frame, module.path, is_reached)
            if play is not None:
                yield play

    def _enter_call(self, place: _Place, target: FunctionInfo, frame: Frame) -> list[Frame]:
        """The frames of `target` that a call enters; none if it surely means something else."""
        if never_runs(frame, place.call):
            return []
        node = place.handed if place.handed is not None else place.call.func
        if isinstance(node, ast.Attribute) and node.attr == "remote":
            node = node.value
        found: list[Frame] = []
        is_open = False
        call = _handed_call(place.call) if place.handed is not None else place.call
        parent = frame if target.outer is not None and target.outer is frame.function else None
        for item in frame.evaluate(node):
            value = item.value
            made: Frame | None = None
            if isinstance(value, v.Callable) and value.function is target:
                made = frame.enter(target, call, value.receiver, value.parent, value.preset)
            elif isinstance(value, v.Class) and place.handed is None and target.name == "__init__":
                objects = [
                    one.value for one in frame.evaluate(place.call) if isinstance(one.value, v.Instance)
                ]
                inits = [one.init for one in objects if one.init is not None and one.init.function is target]
                made = inits[-1] if inits else None
            elif isinstance(value, v.Callable) and value.function.owner and target.owner:
                # A base class's method, entered for an object that is not known exactly.
                known = value.receiver.value if value.receiver is not None else None
                is_made = isinstance(known, v.Instance) and known.made_at is not None
                is_open |= value.function.owner in classes.own(target.owner) and not is_made
            is_open |= isinstance(value, v.Unknown)
            if made is not None:
                made.doubts, made.found_by = frame.doubts | item.doubts, item.marks
                made.is_handed = place.handed is not None
                found.append(made)
        if found or not is_open:
            return found
        receiver = Alternative(v.Instance(target.owner)) if target.owner is not None else None
        made = frame.enter(target, call, receiver, parent)
        shown = target.owner.name + "." if target.owner is not None else ""
        where = f"{place.module.path}:{place.call.lineno}"
        made.doubts = frame.doubts | {f"the call at {where} is taken for {shown}{target.name} by its name"}
        made.is_handed = place.handed is not None
        return [made]

    def _at(self, site: Site, frame: Frame, script: str, is_reached: bool) -> Play | None:
        if site.fact is not None:
            return Play(site, frame, [], (), script, is_reached, frame.doubts)
        environments: list[Alternative] = []
        doubts = frame.doubts
        if site.receiver is not None:
            receivers = frame.evaluate(site.receiver)
            environments = [item for item in receivers if isinstance(item.value, v.Environment)]
            likely = [item for item in environments if not item.is_unlikely]
            environments = likely or environments
            if not environments:
                known = [item.value for item in receivers if not isinstance(item.value, v.Unknown)]
                owners = [one.info for one in known if isinstance(one, v.Instance)]
                is_other = (
                    known and len(owners) == len(known) and not any("step" in one.methods for one in owners)
                )
                if is_other or not any(map(_ENVIRONMENT_NAME.search, names_in(site.receiver))):
                    return None
                doubts |= {f"what {ast.unparse(site.receiver)} is cannot be read"}
        assert site.action is not None
        if site.receiver is None and site.action in site.call.args:
            doubts |= {f"what is sent as {ast.unparse(site.action)} is taken for an action by its name"}
        if not site.is_text and _is_passed_on(site.action, frame, is_known=bool(environments)):
            return None  # a worker or a wrapper passes on what somebody else has chosen
        actions = (site.is_text and library.by_text_settings(site.call, frame)) or frame.evaluate(site.action)
        return Play(site, frame, environments, actions, script, is_reached, doubts)


def _may_be_environment(call: ast.Call, receiver: ast.expr, owner: ClassInfo | None) -> bool:
    word = last_name(receiver)
    if word in ("self", "super"):
        return False
    if last_name(call.func) == "act":
        # gym3's `act` gives nothing back; other environments have agents of their own that act.
        is_agents = owner is not None and re.search(r"env", owner.name, re.IGNORECASE)
        return isinstance(parent_of(call), ast.Expr) and "env" in word and not is_agents
    return bool(_ENVIRONMENT_NAME.search(word)) or not _NOT_AN_ENVIRONMENT.search(word)


def _is_text(call: ast.Call) -> bool:
    """Whether `generate` is given what language models take."""
    given = {one.arg or "" for one in call.keywords}.union(*map(names_in, arguments_of(call)))
    return isinstance(call.func, ast.Attribute) and any(map(_TEXT_SETTING.search, given))


def unbound(evaluator: Evaluator, function: FunctionInfo) -> Frame:
    """A frame for a function that nothing is known to call: parameters at their defaults or not known."""
    receiver = Alternative(v.Instance(function.owner)) if function.owner is not None else None
    home = function.module.frame
    parent = unbound(evaluator, function.outer) if function.outer is not None else None
    frame = home.children.get((0, id(function), -1, 0))
    if frame is None:
        frame = calls.bind(function, None, home, receiver, parent)
        frame.caller, frame.depth = None, 0
        home.children[(0, id(function), -1, 0)] = frame
    return frame


def _is_passed_on(action: ast.expr, frame: Frame, *, is_known: bool) -> bool:
    """Whether an action comes from another process, or into an unknown environment through an unbound parameter."""
    names = {node.id for node in ast.walk(action) if isinstance(node, ast.Name)}
    for node in own_nodes(frame.scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            is_message = last_name(node.value.func) in ("recv", "get_message") or (
                last_name(node.value.func) == "get" and not node.value.args
            )
            if is_message and names & {inner for target in node.targets for inner in names_in(target)}:
                return True
    if frame.function is None or frame.caller is not None or is_known:
        return False
    own = {one.arg for one in frame.function.named}
    return bool(names) and names <= own and not names & frame.bindings.keys()


@kept_on_node
def _handed_call(call: ast.Call) -> ast.Call | None:
    """The arguments with which a library calls a function that it was given, where the text says so."""
    given = next((item.value for item in call.keywords if item.arg == "args"), None)
    is_known = last_name(call.func) in ("Process", "Thread", "submit", "apply_async")
    if not is_known or not isinstance(given, ast.Tuple | ast.List):
        return None
    return ast.copy_location(ast.Call(call.func, list(given.elts), []), call)


def _action_argument(call: ast.Call) -> ast.expr:
    """The argument of a step that is the action: by its name, the only one, or the third in JAX."""
    for keyword in call.keywords:
        if keyword.arg and re.match(r"act", keyword.arg):
            return keyword.value
    named = [one for one in call.args if re.search(r"(^|_)(act|action|actions|a)s?($|_)", last_name(one))]
    if len(call.args) >= 3:
        return named[0] if named else call.args[2]
    if call.args:
        return named[0] if named and len(call.args) > 1 else call.args[0]
    return call.keywords[0].value
