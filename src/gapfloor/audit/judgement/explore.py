"""Walking a repository's calls from its scripts, and noting every place where an environment is stepped."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from gapfloor.audit.interpreter import calls
from gapfloor.audit.interpreter.binding import argument, fits
from gapfloor.audit.interpreter.construction import environments_of
from gapfloor.audit.interpreter.dependencies import actions_of_loop, exploration_around
from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.facts import LoopFact, find_loops
from gapfloor.audit.interpreter.methods import PLAIN_CASTS
from gapfloor.audit.interpreter.objects import guards_of
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Binding,
    Callable,
    Class,
    Environment,
    External,
    ExternalObject,
    Frame,
    Instance,
    Mark,
    Unknown,
)
from gapfloor.audit.judgement.reachable_names import handed_over, interesting_names, maps_step
from gapfloor.audit.reading.index import FunctionInfo, ModuleInfo, last_name, own_nodes

MOST_FRAMES = 8_000
MOST_FRAMES_OF_A_FUNCTION = 60
#: Words by which a function or an environment says that it measures instead of learning.
EVALUATING = re.compile(r"eval|test|valid|perform|score|assess|benchmark|holdout|held", re.IGNORECASE)
_ENVIRONMENT_NAME = re.compile(r"env", re.IGNORECASE)


@dataclass(eq=False)
class StepEvent:
    """One place where an environment is stepped, in one chain of calls."""

    frame: Frame
    node: ast.Call
    environments: list[Alternative]
    actions: tuple[Alternative, ...]
    script: str
    fact: LoopFact | None = None


@dataclass
class Exploration:
    """What was found, and whether the walk was complete."""

    events: list[StepEvent] = field(default_factory=list)
    served: list[tuple[Environment, Frame]] = field(default_factory=list)
    """Environments that a worker process steps as it is told, with the frame of the worker."""
    is_complete: bool = True
    unfinished: list[str] = field(default_factory=list)
    """Scripts and modules that were not followed to the end because the budget ran out, the likeliest first."""


class Explorer:
    """Walks calls, one frame at a time."""

    def __init__(self, evaluator: Evaluator, *, only: str | None = None) -> None:
        self.evaluator = evaluator
        self.only = only
        """The path of the one script to walk from, or None for all."""
        self.result = Exploration()
        self._frames = 0
        self._per_function: dict[int, int] = {}
        self._visited: dict[int, Frame] = {}  # keeps frames alive, so that an id stays theirs
        self._entered: set[FunctionInfo] = set()
        self._seen: set[tuple[object, ...]] = set()
        self._interesting = interesting_names(evaluator)

    def explore(self) -> Exploration:
        """Walk from every script, then from every function that no script reached."""
        modules = list(self.evaluator.index.modules.values())
        if self.only is not None:
            self._walk(self.evaluator.module_frame(self.evaluator.index.modules[self.only]), self.only)
            modules = [module for module in modules if module.path == self.only]
        for module in sorted(modules, key=_urgency):
            if is_unit_test(module):
                continue
            if module.is_script or self._has_interesting_call(module):
                self._walk(self.evaluator.module_frame(module), module.path)
                if self._is_spent:
                    self.result.unfinished.append(module.path)
        for module in sorted(modules, key=lambda item: item.path):
            if is_unit_test(module):
                continue
            for function in list(module.functions.values()):
                if (
                    function not in self._entered
                    and function.outer is None
                    and function.name in self._interesting
                ):
                    self._walk(self._unbound(function), module.path)
        self.result.is_complete = self.result.is_complete and not self.evaluator.is_exhausted
        return self.result

    @property
    def _is_spent(self) -> bool:
        return self._frames > MOST_FRAMES or self.evaluator.is_exhausted

    def _has_interesting_call(self, module: ModuleInfo) -> bool:
        return any(
            isinstance(node, ast.Call) and last_name(node.func) in self._interesting
            for node in own_nodes(module.tree)
        )

    def _unbound(self, function: FunctionInfo) -> Frame:
        receiver = None
        if function.owner is not None:
            if self.evaluator.objects.is_environment(function.owner):
                # What an environment's own methods step is an inner environment, not an evaluation.
                return Frame(module=function.module)
            receiver = Alternative(Instance(function.owner, None, None, None))
        frame = Frame(module=function.module, function=function, receiver=receiver)
        home = self.evaluator.module_frame(function.module)
        arguments = function.node.args
        positional = [arg.arg for arg in [*arguments.posonlyargs, *arguments.args]]
        for name, default in zip(positional[::-1], list(arguments.defaults)[::-1], strict=False):
            frame.bindings[name] = Binding(default, home, is_default=True)
        for given, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if keyword_default is not None:
                frame.bindings[given.arg] = Binding(keyword_default, home, is_default=True)
        return frame

    def _walk(self, frame: Frame, script: str) -> None:
        if id(frame) in self._visited:
            return
        self._visited[id(frame)] = frame
        function = frame.function
        if function is not None:
            self._entered.add(function)
            self._per_function[id(function)] = self._per_function.get(id(function), 0) + 1
            if self._per_function[id(function)] > MOST_FRAMES_OF_A_FUNCTION:
                return
        self._frames += 1
        if self._is_spent:
            self.result.is_complete = False
            return
        for node in own_nodes(frame.scope):
            if isinstance(node, ast.Call):
                try:
                    self._visit(node, frame, script)
                except RecursionError:
                    # Deeper than the stack: what lies behind this call is not known, the rest still is.
                    self.result.is_complete = False

    def _visit(self, call: ast.Call, frame: Frame, script: str) -> None:
        name = last_name(call.func)
        is_mapped = isinstance(call.func, ast.Call) and maps_step(call.func)
        is_handed = any(
            last_name(item) in self._interesting
            for item in handed_over(call)
            if isinstance(item, ast.Name | ast.Attribute | ast.Call)
        )
        is_remote = isinstance(call.func, ast.Attribute) and name == "remote"
        if name not in self._interesting and not is_remote and not is_mapped and not is_handed:
            return
        if any(self.evaluator.is_ruled_out(guard) for guard in guards_of(frame, call)):
            return
        is_step = (
            isinstance(call.func, ast.Attribute)
            and name in ("step", "act", "step_async")
            and bool(call.args or call.keywords)
        )
        if (is_step or is_mapped) and self._note_step(call, frame, script):
            return
        if name == "rollout" and self._note_rollout(call, frame, script):
            return
        target_node: ast.expr = call.func
        if name == "remote" and isinstance(call.func, ast.Attribute):
            target_node = call.func.value
        targets = self.evaluator.evaluate(target_node, frame)
        known = [item for item in targets if isinstance(item.value, Callable | Class | External)]
        for target in known or targets:
            self._follow(target, call, frame, script)
        if not any(isinstance(item.value, Callable | Class) for item in targets):
            self._follow_callbacks(call, frame, script)

    def _follow_callbacks(self, call: ast.Call, frame: Frame, script: str) -> None:
        """Functions handed to something outside the repository are called there: scan, Process, map, Thread."""
        for given in handed_over(call):
            if not isinstance(given, ast.Name | ast.Attribute | ast.Lambda | ast.Call):
                continue
            if isinstance(given, ast.Call) and last_name(given.func) not in (
                "partial",
                "jit",
                "vmap",
                "pmap",
                "remote",
            ):
                continue
            for item in self.evaluator.evaluate(given, frame):
                value = item.value
                if not isinstance(value, Callable) or value.function.name not in self._interesting:
                    continue
                owner = value.function.owner
                if owner is not None and self.evaluator.objects.is_environment(owner):
                    continue
                if calls.may_enter(value.function, frame):
                    handed = call_with(call, given)
                    inner = self.evaluator.bound_frame(
                        value.function, handed, frame, value.receiver, value.parent, value.preset
                    )
                    self._walk(inner, script)

    def _follow(self, target: Alternative, call: ast.Call, frame: Frame, script: str) -> None:
        value = target.value
        if isinstance(value, Callable):
            owner = value.function.owner
            if owner is not None and self.evaluator.objects.is_environment(owner):
                return
            if calls.may_enter(value.function, frame):
                inner = self.evaluator.bound_frame(
                    value.function, call, frame, value.receiver, value.parent, value.preset
                )
                inner.found_by = target.marks
                self._walk(inner, script)
        elif isinstance(value, Class):
            for made in self.evaluator.evaluate(call, frame):
                if isinstance(made.value, Instance) and made.value.init is not None:
                    self._walk(made.value.init, script)
        elif isinstance(value, External):
            self._note_fact(value.name, call, frame, script)
        elif isinstance(value, Unknown):
            self._follow_by_name(last_name(call.func), call, frame, script)

    def _follow_by_name(self, name: str, call: ast.Call, frame: Frame, script: str) -> None:
        candidates = [
            function
            for function in self.evaluator.index.functions_by_name.get(name, [])
            if function.owner is not None
            and not self.evaluator.objects.is_environment(function.owner)
            and fits(function, call)
        ]
        reach = self.evaluator.index.reach(frame.chain()[0].module)
        candidates = [item for item in candidates if item.module.path in reach] or candidates
        if 0 < len(candidates) <= 3:
            for function in candidates:
                assert function.owner is not None
                receiver = Alternative(Instance(function.owner, None, None, None))
                if calls.may_enter(function, frame):
                    self._walk(self.evaluator.bound_frame(function, call, frame, receiver, None), script)

    def _note_step(self, call: ast.Call, frame: Frame, script: str) -> bool:
        function = call.func
        if isinstance(function, ast.Call):  # jax.vmap(env.step, ...)(keys, states, actions)
            function = function.args[0]
        assert isinstance(function, ast.Attribute)
        receivers = self.evaluator.evaluate(function.value, frame)
        environments = [item for item in receivers if isinstance(item.value, Environment)]
        # Settings at their defaults choose among the ways in which one environment can be made.
        environments = [item for item in environments if not self.evaluator.is_unlikely(item)] or environments
        if not environments:
            is_unknown = any(isinstance(item.value, Unknown | ExternalObject) for item in receivers)
            looks_like_one = bool(_ENVIRONMENT_NAME.search(last_name(function.value)))
            if function.attr == "act" or not (is_unknown and looks_like_one):
                return False
        given = _action_argument(call)
        is_message = self._is_handed_in(given, frame) and not self._is_parameter(given, frame)
        if is_message:
            self.result.served += [
                (item.value, frame) for item in environments if isinstance(item.value, Environment)
            ]
        if is_message or (not environments and self._is_handed_in(given, frame)):
            return True  # a worker or a wrapper passes on what somebody else has chosen
        actions = self.evaluator.evaluate(given, frame)
        self._add(StepEvent(frame, call, environments, actions, script))
        return True

    def _note_rollout(self, call: ast.Call, frame: Frame, script: str) -> bool:
        """TorchRL's `env.rollout(...)` resets the environment and plays it under the exploration type around it."""
        if not isinstance(call.func, ast.Attribute):
            return False
        words = [last_name(call.func.value), *(one.function.name for one in frame.chain() if one.function)]
        actions = exploration_around(self.evaluator, call, frame)
        receivers = self.evaluator.evaluate(call.func.value, frame)
        environments = [item for item in receivers if isinstance(item.value, Environment)]
        if not actions and environments and argument(call, "policy", 1) is not None:
            # Without an exploration type the default of the policy holds, which this repository does not state.
            actions = (
                Alternative(Unknown("the policy's own exploration type (no set_exploration_type around)")),
            )
        if not actions or not (environments or any(EVALUATING.search(word) for word in words)):
            return False  # nothing says whether the episodes are played to learn or to measure
        fact = LoopFact(
            "torchrl.envs.EnvBase.rollout", "self", "evaluation", "EnvBase.rollout resets and plays"
        )
        self._add(StepEvent(frame, call, environments, actions, script, fact))
        return True

    def _is_parameter(self, argument: ast.expr, frame: Frame) -> bool:
        while isinstance(argument, ast.Subscript | ast.Attribute | ast.Starred):
            argument = argument.value
        return isinstance(argument, ast.Name) and not self.evaluator.definitions(
            frame.module, frame.scope
        ).get(argument.id)

    def _is_handed_in(self, argument: ast.AST, frame: Frame, depth: int = 4) -> bool:
        """Whether an action comes from outside: an unbound parameter, or a message from another process."""
        while isinstance(argument, ast.Subscript | ast.Attribute | ast.Starred):
            argument = argument.value
        if isinstance(argument, ast.Call):
            if isinstance(argument.func, ast.Attribute) and argument.func.attr in PLAIN_CASTS:
                return self._is_handed_in(argument.func.value, frame, depth)
            return last_name(argument.func) in ("recv", "get", "get_nowait")
        if not isinstance(argument, ast.Name) or depth == 0:
            return False
        definitions = self.evaluator.definitions(frame.module, frame.scope).get(argument.id, [])
        if not definitions:
            return frame.function is not None and argument.id not in frame.bindings
        return all(
            item.expression is not None and self._is_handed_in(item.expression, frame, depth - 1)
            for item in definitions
        )

    def _note_agent(self, fact: LoopFact, name: str, call: ast.Call, frame: Frame, script: str) -> None:
        """An agent of a library plays the environment that its constructor was given."""
        if not isinstance(call.func, ast.Attribute):
            return
        for item in self.evaluator.evaluate(call.func.value, frame):
            if not isinstance(item.value, ExternalObject):
                continue
            given = _made_with(item.value, fact)
            if given is None:
                continue
            environments = [
                one
                for one in self.evaluator.evaluate(given, item.value.frame)
                if isinstance(one.value, Environment)
            ]
            mark = Mark(frame.module.path, call.lineno, f"{name} plays the environment: {fact.source}")
            actions = actions_of_loop(self.evaluator, fact, call, frame, mark)
            self._add(StepEvent(frame, call, environments, actions, script, fact))

    def _add(self, event: StepEvent) -> None:
        chosen = tuple(
            sorted(
                (item.value.rule, item.value.node.lineno if hasattr(item.value.node, "lineno") else 0)
                for item in event.actions
                if isinstance(item.value, Action)
            )
        )
        made = tuple(
            id(item.value.call) for item in event.environments if isinstance(item.value, Environment)
        )
        flow = tuple(id(one.call) for one in event.frame.chain())
        key = (id(event.node), event.script, chosen, made, flow, event.fact)
        if key not in self._seen:
            self._seen.add(key)
            self.result.events.append(event)

    def _note_fact(self, name: str, call: ast.Call, frame: Frame, script: str) -> None:
        kind, _, method = name.rpartition("().")
        for fact in find_loops(f"{kind}.{method}" if kind else name):
            if kind and fact.environment_at != "constructor":
                continue  # a method that happens to have the name of a library's function
            if fact.environment_at == "constructor":
                self._note_agent(fact, name, call, frame, script)
                continue
            given: ast.expr | None = None
            if fact.position is not None and len(call.args) > fact.position:
                given = call.args[fact.position]
            for keyword in call.keywords:
                if keyword.arg == fact.environment:
                    given = keyword.value
            if given is None:
                continue
            environments = [*environments_of(self.evaluator, given, frame)]
            mark = Mark(frame.module.path, call.lineno, f"{name} plays the environment: {fact.source}")
            actions = actions_of_loop(self.evaluator, fact, call, frame, mark)
            self._add(StepEvent(frame, call, environments, actions, script, fact))


def _action_argument(call: ast.Call) -> ast.expr:
    """The action: by keyword, by name, the third argument of `step(key, state, action)`, else the first."""
    for keyword in call.keywords:
        if keyword.arg in ("action", "actions"):
            return keyword.value
    named = [item for item in call.args if re.match(r"actions?$|act$", last_name(item))]
    if len(call.args) >= 2 and len(named) == 1:
        return named[0]
    if len(call.args) >= 3 and re.search(r"rng|key|seed", last_name(call.args[0]) or ""):
        return call.args[2]
    return call.args[0] if call.args else call.keywords[0].value


def call_with(call: ast.Call, callback: ast.expr) -> ast.Call:
    """The call that another process or a scan makes: `args=(...)` are its arguments, otherwise they are not known."""
    kept: ast.Call | None = getattr(call, "_handed_over", None)
    if kept is None:
        given = next((item.value for item in call.keywords if item.arg == "args"), None)
        if isinstance(given, ast.Tuple | ast.List):
            kept = ast.Call(func=callback, args=list(given.elts), keywords=[])
        else:
            unknown = ast.copy_location(ast.Name("arguments_of_the_library", ast.Load()), call)
            kept = ast.Call(func=callback, args=[], keywords=[ast.keyword(arg=None, value=unknown)])
        ast.copy_location(kept, call)
        kept._worker_of = call.func  # type: ignore[attr-defined]
        call._handed_over = kept  # type: ignore[attr-defined]
    return kept


def _urgency(module: ModuleInfo) -> tuple[bool, bool, int, str]:
    """Scripts first, and of these the ones that by their name train or evaluate; then from the top of the tree down."""
    name = module.path.rsplit("/", 1)[-1]
    is_named = re.match(r"(train|main|run|eval|test|enjoy)", name, re.IGNORECASE) is not None
    return (not module.is_script, not is_named, module.path.count("/"), module.path)


def _made_with(value: ExternalObject, fact: LoopFact) -> ast.expr | None:
    """The environment that an agent of a library was made with."""
    for keyword in value.call.keywords:
        if keyword.arg == fact.environment:
            return keyword.value
    if fact.position is not None and len(value.call.args) > fact.position:
        return value.call.args[fact.position]
    return None


def is_unit_test(module: ModuleInfo) -> bool:
    """Whether a file tests the code rather than a policy (`test.py` next to `train.py` is an evaluation)."""
    parts = module.path.lower().split("/")
    if not (parts[-1].startswith("test_") or parts[-1].endswith("_test.py") or parts[-1] == "conftest.py"):
        return False
    frameworks = {"unittest", "pytest", "absltest", "parameterized", "nose"}
    imported = {part for dotted in module.imports.values() for part in dotted.split(".")}
    cases = [
        base for info in module.classes.values() for base in info.node.bases if last_name(base) == "TestCase"
    ]
    return bool({"tests", "test", "testing"} & set(parts[:-1])) or bool(frameworks & imported) or bool(cases)
