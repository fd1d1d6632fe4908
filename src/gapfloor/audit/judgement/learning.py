"""Where weights are updated, and what a step is played for: to learn, to measure, or to fill a buffer beforehand.

An update is a call that changes weights itself (a backward pass, an optimizer's step), or a call of a function of the
repository that is resolved and leads to one. A method of something unknown is never an update because of its name; if
its name says so, the answer is that it may be one.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.calls import may_enter
from gapfloor.audit.interpreter.evaluator import Evaluator, guards_of, loops_around
from gapfloor.audit.interpreter.facts import words
from gapfloor.audit.interpreter.reaching_definitions import conditions
from gapfloor.audit.interpreter.values import Alternative, Frame, Mark, describe
from gapfloor.audit.judgement.sites import Play
from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, dotted_name, last_name, names_in, own_nodes

EVALUATING = re.compile(
    r"eval|test(?!_?worker)|valid(?!_act)|perform|score|assess|benchmark|holdout|held|inference",
    re.IGNORECASE,
)
TRAINING = re.compile(
    r"train|rollout|explor|collect|sample_(trajector|episode|batch|data)|gather|learn", re.IGNORECASE
)
_OPTIMIZER = re.compile(r"optim|^opt|opt$|adam|scaler|sgd", re.IGNORECASE)
_DIRECT = frozenset({"backward", "apply_gradients", "minimize", "train_on_batch", "apply_updates"})
_LEARNS = re.compile(r"update|train|learn|optimi[sz]e|^fit$|backward|improve|gradient", re.IGNORECASE)
#: Objects with a method `update` that has nothing to do with weights.
_NO_LEARNER = re.compile(
    r"bar$|progress|tqdm|config|hash|kwargs|dict|info|log|meter|stats|metric|rms|counter|wandb|writer|normali",
    re.IGNORECASE,
)
_TRAIN_OPERATION = re.compile(r"train|optim|update", re.IGNORECASE)
_STORING = words("storing")
_MEMORY = re.compile(
    r"buffer|memory|replay|storage|rollouts?$|trajector|transitions|batch|^episode$|^data$|dataset",
    re.IGNORECASE,
)
_SEEN = re.compile(r"(^|_)(obs|obss|observations?|states?|s|next_state|s_lst|s_list)(_|$|\d)", re.IGNORECASE)
_DONE = re.compile(r"(^|_)(acts?|actions?|a|a_lst|a_list|log_?probs?|logps?)(_|$|\d)", re.IGNORECASE)
_FLAGS = re.compile(r"^(is_?)?(eval|evaluat\w*|test|testing|test_mode|deterministic|greedy)$", re.IGNORECASE)
_OFF_FLAGS = re.compile(r"^(is_?)?(train|training|explore|learn|learning|train_mode)$", re.IGNORECASE)
_RESETS = frozenset(
    {"reset", "reset_to_level", "reset_task", "reset_wait", "initial_reset", "reset_env", "reset_envs"}
)


@dataclass
class Role:
    """What a step is played for, with the reasons."""

    kind: str
    """rollout, evaluation or collection."""
    is_proved: bool
    score: int = 0
    """How strongly the code says that it is an evaluation."""
    loop: ast.AST | None = None
    home: Frame | None = None
    is_fresh: bool = True
    """Whether its episodes begin after the last update and end before the next."""
    marks: list[Mark] = field(default_factory=list)
    doubts: set[str] = field(default_factory=set)


def is_direct_update(call: ast.Call) -> bool:
    """Whether a call itself changes weights: a backward pass, an optimizer's step, a training operation."""
    name = last_name(call.func)
    if name in _DIRECT:
        return True
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if name in ("step", "update") and receiver is not None and _OPTIMIZER.search(last_name(receiver)):
        return True
    if name == "run" and receiver is not None and "sess" in last_name(receiver) and call.args:
        return any(_TRAIN_OPERATION.search(word) and word != "train_model" for word in names_in(call.args[0]))
    return False


def stores(node: ast.AST) -> bool:
    """Whether a call keeps a transition (something seen and something done) or an episode for later."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, receiver = node.func.attr, last_name(node.func.value)
    given = [
        one for item in [*node.args, *(keyword.value for keyword in node.keywords)] for one in names_in(item)
    ]
    is_transition = any(map(_SEEN.search, given)) and any(map(_DONE.search, given))
    if name in _STORING:
        return is_transition or bool(_MEMORY.search(receiver)) or len(node.args) >= 4
    return name in ("add", "append", "insert", "extend", "put", "add_batch") and (
        is_transition or bool(_MEMORY.search(receiver))
    )


def collects(nodes: tuple[ast.AST, ...]) -> bool:
    """Whether both what is seen and what is done are kept in lists or arrays: an evaluation keeps rewards alone."""
    kept = set()
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("append", "extend", "add"):
                kept.add(last_name(node.func.value))
                if isinstance(node.func.value, ast.Subscript) and isinstance(
                    node.func.value.slice, ast.Constant
                ):
                    kept.add(str(node.func.value.slice.value))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript):
                    kept.add(last_name(target.value))
    return any(map(_SEEN.search, kept)) and any(map(_DONE.search, kept))


class Updates:
    """Knows which functions of a repository update weights: surely, perhaps, or not."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._callers: dict[FunctionInfo, list[FunctionInfo]] = {}
        functions = [one for module in evaluator.index.modules.values() for one in module.functions.values()]
        sure = {one for one in functions if any(is_direct_update(call) for call in one.calls)}
        named: dict[FunctionInfo, list[FunctionInfo]] = {}
        for one in functions:
            for call in one.calls:
                targets = self._targets(call, one)
                for target in targets:
                    self._callers.setdefault(target, []).append(one)
                if not targets and isinstance(call.func, ast.Attribute) and _LEARNS.search(call.func.attr):
                    for target in evaluator.index.functions_by_name.get(call.func.attr, ()):
                        if target.owner is not None:
                            named.setdefault(target, []).append(one)
        self.sure = self._closure(sure, self._callers)
        both = {key: [*self._callers.get(key, ()), *named.get(key, ())] for key in {*self._callers, *named}}
        self.maybe = self._closure(self.sure, both) - self.sure
        self.names = {one.name for one in self.sure | self.maybe}
        self._regions: dict[tuple[int, int], tuple[str, ast.AST | None]] = {}

    def _closure(
        self, start: set[FunctionInfo], callers: dict[FunctionInfo, list[FunctionInfo]]
    ) -> set[FunctionInfo]:
        found, waiting = set(start), list(start)
        while waiting:
            for caller in callers.get(waiting.pop(), ()):
                if caller not in found:
                    found.add(caller)
                    waiting.append(caller)
        return found

    def _targets(self, call: ast.Call, function: FunctionInfo) -> list[FunctionInfo]:
        """The functions that a call surely means, without evaluating anything but names and classes."""
        node, module = call.func, function.module
        if isinstance(node, ast.Name):
            inner = [one for one in module.functions.values() if one.name == node.id and one.owner is None]
            local = [one for one in inner if one.outer is not None]
            if local:
                return local
            found = self.evaluator.global_name(module, node.id)
            return [one.value.function for one in found if isinstance(one.value, v.Callable)]
        if not isinstance(node, ast.Attribute):
            return []
        owner = function.owner or (function.outer.owner if function.outer else None)
        classes = self.evaluator.classes
        if isinstance(node.value, ast.Name) and node.value.id == "self" and owner is not None:
            own = classes.method(owner, node.attr)
            below = [one.methods[node.attr] for one in classes.subclasses(owner) if node.attr in one.methods]
            return [*([own] if own else []), *below]
        if isinstance(node.value, ast.Call) and last_name(node.value) == "super" and owner is not None:
            above = classes.method(owner, node.attr, after=owner)
            return [above] if above else []
        info = self._class_of(node.value, function, owner)
        method = classes.method(info, node.attr) if info is not None else None
        if method is not None:
            return [method]
        dotted = dotted_name(node)
        if dotted and dotted.split(".", 1)[0] in module.imports:
            found = self.evaluator.evaluate(node, self.evaluator.module_frame(module))
            return [one.value.function for one in found if isinstance(one.value, v.Callable)]
        return []

    def _class_of(self, node: ast.expr, function: FunctionInfo, owner: ClassInfo | None) -> ClassInfo | None:
        """The class of an object whose one assignment constructs it in place."""
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
            and owner
        ):
            places = [
                (base.module, one)
                for base in self.evaluator.classes.own(owner)
                for method in base.methods.values()
                for one in self.evaluator.definitions(base.module, method.node).get(f"self.{node.attr}", ())
            ]
        elif isinstance(node, ast.Name):
            scopes = [function.node, function.module.tree]
            places = [
                (function.module, one)
                for scope in scopes
                for one in self.evaluator.definitions(function.module, scope).get(node.id, ())
            ]
        else:
            return None
        found = {
            info
            for module, one in places
            if isinstance(one.expression, ast.Call) and not one.path
            for info in [self.evaluator.class_of(one.expression.func, module)]
        }
        made = [one for one in found if isinstance(one, ClassInfo)]
        return made[0] if len(made) == 1 and len(found) == 1 else None

    def status(self, region: ast.AST, frame: Frame) -> tuple[str, ast.AST | None]:
        """Whether weights are updated inside a region of a frame (yes, maybe, no), and by which call."""
        key = (id(region), id(frame))
        if key not in self._regions:
            self._regions[key] = ("no", None)
            found: tuple[str, ast.AST | None] = ("no", None)
            for node in own_nodes(region):
                if isinstance(node, ast.Call):
                    answer = self._of_call(node, frame, 4)
                    if answer == "yes":
                        found = ("yes", node)
                        break
                    found = ("maybe", node) if answer == "maybe" and found[0] == "no" else found
            self._regions[key] = found
        return self._regions[key]

    def _of_call(self, call: ast.Call, frame: Frame, depth: int) -> str:
        name = last_name(call.func)
        if isinstance(call.func, ast.Name) and name in frame.module.imports:
            name = frame.module.imports[name].rsplit(".", 1)[-1]
        handed = [
            last_name(one)
            for one in [*call.args, *(item.value for item in call.keywords)]
            if isinstance(one, ast.Name | ast.Attribute)
        ]
        name = "__call__" if self._is_object(call, frame) else name
        is_control = name in ("scan", "fori_loop", "while_loop", "cond", "switch", "partial")
        receiver = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        is_named = (
            bool(_LEARNS.search(name))
            and len(call.args) + len(call.keywords) >= 1
            and not _is_mode(call)
            and not _NO_LEARNER.search(receiver)
        )
        is_handed = is_control and bool(set(handed) & self.names)
        if not is_direct_update(call) and name not in self.names and not is_handed and not is_named:
            return "no"
        if any(self.evaluator.is_ruled_out(guard) for guard in guards_of(frame, call)):
            return "no"
        if is_direct_update(call):
            return "yes"
        if is_control:
            return "yes" if any(one.name in handed for one in self.sure) else "no"
        values = [item.value for item in self.evaluator.evaluate(call.func, frame)]
        for value in values:
            method = (
                self.evaluator.classes.method(value.info, "__call__")
                if isinstance(value, v.Instance)
                else None
            )
            if method is not None and isinstance(value, v.Instance):
                values = [*values, v.Callable(method, Alternative(value))]
        known = [value for value in values if isinstance(value, v.Callable)]
        if known:
            return max(
                (self._of_target(one, call, frame, depth) for one in known), key=["no", "maybe", "yes"].index
            )
        if any(isinstance(value, v.Class) for value in values):
            return "no"
        is_unread = any(
            (isinstance(value, v.Unknown) and not value.is_neutral)
            or (isinstance(value, v.External) and "()." in value.name and len(call.args) > 1)
            for value in values
        )
        return "maybe" if is_unread and is_named else "no"

    def _is_object(self, call: ast.Call, frame: Frame) -> bool:
        """Whether an object is called whose `__call__` may update: `policy(obs)`."""
        if "__call__" not in self.names or not isinstance(call.func, ast.Name):
            return False
        found = self.evaluator.evaluate(call.func, frame)
        return any(
            isinstance(item.value, v.Callable) and item.value.function.name == "__call__" for item in found
        ) or any(isinstance(item.value, v.Instance) for item in found)

    def _of_target(self, target: v.Callable, call: ast.Call, frame: Frame, depth: int) -> str:
        function = target.function
        if function not in self.sure and function not in self.maybe:
            return "no"
        answer = "yes" if function in self.sure else "maybe"
        if depth == 0 or not may_enter(function, frame):
            return answer
        inner = self.evaluator.bound_frame(
            function, call, frame, target.receiver, target.parent, target.preset
        )
        own = {id(node) for node in own_nodes(inner.scope)}
        doubtful = [
            one for one in function.calls if is_direct_update(one) or last_name(one.func) in self.names
        ]
        if any(id(one) not in own for one in doubtful):
            return answer  # a function inside it may be called anywhere
        answers = {self._of_call(one, inner, depth - 1) for one in doubtful}
        return "yes" if "yes" in answers else "maybe" if "maybe" in answers else "no"


def _is_mode(call: ast.Call) -> bool:
    """`net.train()` switches a mode."""
    constant = all(isinstance(item, ast.Constant) for item in call.args)
    return last_name(call.func) in ("train", "eval") and constant and not call.keywords


def decide_role(updates: Updates, play: Play) -> Role:
    """What one play is for."""
    site, frame = play.site, play.frame
    chain = frame.chain()
    loop, home, status, call = _learning_loop(updates, play)
    inside = chain[chain.index(home) + 1 :] if home is not None else chain[1:]
    names = [one.function.name for one in (inside or chain[-1:]) if one.function is not None]
    names += [one.function.name for one in chain if one.function is not None and one not in inside][-1:]
    receiver = last_name(site.receiver) if site.receiver is not None else ""
    is_fresh, is_reset_below = _is_fresh(play, home, loop)
    around = _episode_nodes(play, home, loop)
    keeps = any(stores(node) for node in around) or collects(tuple(around))
    says = [name for name in names if EVALUATING.search(name) and not re.search(r"^train|^main", name)]
    flags = [flag for one in [*chain[1:]] for flag in _flags(updates.evaluator, one)]
    flags += _call_flags(play)
    learns = [name for name in names if TRAINING.search(name)]
    role = Role("evaluation", True, loop=loop, home=home, is_fresh=is_fresh)
    script = play.script.rsplit("/", 1)[-1]
    role.score = 3 * bool(says) + 3 * bool(flags) + 2 * bool(EVALUATING.search(receiver))
    role.score += 2 * bool(EVALUATING.search(script)) + (home is not None and is_fresh)
    against = 3 * keeps + 2 * bool(learns and not says) + 3 * (status == "yes" and not is_fresh)
    if loop is not None and home is not None and status == "yes":
        line = getattr(loop, "lineno", 0)
        role.marks.append(Mark(home.module.path, line, "learning loop: weights are updated in here"))
    if status == "yes" and not is_fresh:
        role.kind = "rollout"
        role.is_proved = True
    elif status == "yes":
        role.kind = "rollout" if against > role.score else "evaluation"
        role.is_proved = (
            (against == 0 and is_reset_below) if role.kind == "evaluation" else keeps and not says
        )
    elif status == "maybe":
        role.kind = "rollout" if against >= role.score and not (is_fresh and not keeps) else "evaluation"
        role.is_proved = False
        role.doubts.add(f"whether {describe(call)} changes weights is not known")
    else:
        learner = _collects_for(updates, play, keeps)
        role.kind = "rollout" if learner and role.score < 3 else "evaluation"
        role.is_proved = not keeps and not learns
    if not role.is_proved and not role.doubts:
        role.doubts.add("whether this is played to learn or to measure is not certain")
    return role


def _learning_loop(updates: Updates, play: Play) -> tuple[ast.AST | None, Frame | None, str, ast.AST | None]:
    """The innermost loop around a step, in any frame of its chain, in which weights are updated."""
    chain = play.frame.chain()
    perhaps: tuple[ast.AST | None, Frame | None, str, ast.AST | None] = (None, None, "no", None)
    for position in range(len(chain) - 1, -1, -1):
        here = chain[position]
        inner = play.site.call if here is play.frame else chain[position + 1].call
        inner = getattr(inner, "_handed", inner)
        regions = [*reversed(loops_around(here, inner))] if inner is not None else []
        if here.is_handed and here.function is not None and here is not chain[0]:
            regions.append(here.scope)  # a worker or the body of `scan` runs again and again
        for region in regions:
            status, call = updates.status(region, here)
            if status == "yes":
                return region, here, "yes", call
            if status == "maybe" and perhaps[2] == "no":
                perhaps = (region, here, "maybe", call)
        if here.is_handed and here.caller is not None:
            status, call = updates.status(here.caller.scope, here.caller)
            if status == "yes":
                return here.caller.scope, here.caller, "yes", call
    return perhaps


def _is_fresh(play: Play, home: Frame | None, loop: ast.AST | None) -> tuple[bool, bool]:
    """Whether the episode begins inside the learning loop, and whether a function below it resets the environment."""
    if home is None:
        return True, True
    chain = play.frame.chain()
    receiver = last_name(play.site.receiver) if play.site.receiver is not None else ""
    inside = chain[chain.index(home) + 1 :]
    names = {id(play.frame): receiver}
    for here in reversed(inside):  # the environment may have another name in the function that hands it on
        binding = here.bindings.get(names[id(here)])
        if here.caller is not None:
            is_passed = binding is not None and binding.expression is not None
            names[id(here.caller)] = last_name(binding.expression) if is_passed else receiver  # type: ignore[union-attr, arg-type]
    for position, here in enumerate(inside):
        inner = inside[position + 1].call if position + 1 < len(inside) else play.site.call
        receiver = names[id(here)]
        resets = [node for node in own_nodes(here.scope) if _resets(node, receiver)]
        if resets:
            # A reset under a condition may not happen.
            return True, any(not _further_conditions(here, node, inner or here.scope) for node in resets)
        if any(_makes(node, receiver) for node in own_nodes(here.scope)):
            return True, True
    if play.frame is not home or loop is None:
        return False, False
    # In the loop's own body: the environment is reset before a loop of its own that learns nothing.
    loops = [one for one in loops_around(home, play.site.call) if one is not loop]
    own = next((one for one in loops if home.module.order[one] > home.module.order[loop]), None)
    if own is None:
        return False, False
    around = home.module.parents.get(own)
    before = own_nodes(around) if around is not None else ()
    order = home.module.order
    reset = any(
        _resets(node, receiver)
        and order[loop] < order[node] < order[play.site.call]
        and not _further_conditions(home, node, own)  # under a condition it may not happen
        for node in before
    )
    others = any(
        isinstance(node, ast.Call)
        and last_name(node.func) == "step"
        and node is not play.site.call
        and node not in own_nodes(own)
        and not is_direct_update(node)
        for node in own_nodes(loop)
    )
    return reset and others, False


def _further_conditions(frame: Frame, node: ast.AST, other: ast.AST) -> set[tuple[int, bool]]:
    """The conditions under which one node runs and another need not."""
    ours, theirs = (
        {(id(test), holds) for test, holds in conditions(frame.module, one, frame.scope, None)}
        for one in (node, other)
    )
    return ours - theirs


def _resets(node: ast.AST, receiver: str) -> bool:
    if isinstance(node, ast.Call) and last_name(node.func) in ("send", "put") and not receiver:
        return any(isinstance(one, ast.Constant) and one.value == "reset" for one in ast.walk(node))
    return (
        isinstance(node, ast.Call)
        and last_name(node.func) in _RESETS
        and (not receiver or not isinstance(node.func, ast.Attribute) or receiver in names_in(node))
    )


def _makes(node: ast.AST, receiver: str) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and any(isinstance(one, ast.Name) and one.id == receiver for one in node.targets)
    )


def _episode_nodes(play: Play, home: Frame | None, loop: ast.AST | None) -> list[ast.AST]:
    """The nodes that run with a step: its loop, and what the frames between it and the learning loop do."""
    chain = play.frame.chain()
    loops = loops_around(play.frame, play.site.call)
    own = [one for one in loops if one is not loop] or loops
    region: ast.AST = own[0] if own else play.frame.scope
    if play.frame is not home and home is not None:
        region = play.frame.scope
    nodes = [*own_nodes(region)]
    start = chain.index(home) + 1 if home is not None else len(chain) - 2
    for here in chain[max(start, 0) : -1]:
        if here.function is not None and here is not chain[0]:
            nodes += own_nodes(here.scope)
    return nodes


def _flags(evaluator: Evaluator, frame: Frame) -> list[str]:
    """Parameters of a frame that say that it measures: `training=False`, `evaluate=True`."""
    found = []
    for name, binding in frame.bindings.items():
        if binding.is_default or not (_FLAGS.match(name) or _OFF_FLAGS.match(name)):
            continue
        values = [item.value for item in evaluator.evaluate_binding(binding, name)]
        plain = [one.value for one in values if isinstance(one, v.KnownValue)]
        if len(values) == 1 and plain == [bool(_FLAGS.match(name))]:
            found.append(name)
    return found


def _call_flags(play: Play) -> list[str]:
    """Literal flags at calls in the stepping function: `act(obs, deterministic=True)`, `policy.eval()`."""
    found = []
    loops = loops_around(play.frame, play.site.call)
    region = play.frame.scope if play.frame.function is not None else loops[-1] if loops else play.site.call
    for node in own_nodes(region):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if (
                    keyword.arg
                    and isinstance(keyword.value, ast.Constant)
                    and isinstance(keyword.value.value, bool)
                ):
                    is_on = keyword.value.value
                    if (_FLAGS.match(keyword.arg) and is_on) or (_OFF_FLAGS.match(keyword.arg) and not is_on):
                        found.append(keyword.arg)
            if last_name(node.func) == "eval" and isinstance(node.func, ast.Attribute) and not node.args:
                found.append("eval()")
    return found


def _collects_for(updates: Updates, play: Play, keeps: bool) -> bool:
    """Whether a step outside any learning loop collects what the same script learns from."""
    chain = play.frame.chain()
    if not keeps:
        return False
    return any(updates.status(one.scope, one)[0] != "no" for one in chain)
