"""Where weights are updated, and what a step is played for: to learn, to measure, or to fill a buffer beforehand.

An update is a call that changes weights itself (a backward pass, an optimizer's step), or a call of a function of the
repository that is resolved and leads to one. A method of something unknown is never an update because of its name; if
its name says so, the answer is that it may be one.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from gapfloor.audit.interpreter import classes
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.calls import may_enter
from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.facts import pattern, words
from gapfloor.audit.interpreter.reaching_definitions import conditions, loops_around, never_runs, stores_in
from gapfloor.audit.interpreter.values import Alternative, Frame, Mark, describe
from gapfloor.audit.judgement.sites import Play
from gapfloor.audit.reading.index import (
    FunctionInfo,
    ModuleInfo,
    arguments_of,
    last_name,
    names_in,
    own_nodes,
    parent_of,
    place_of,
)

EVALUATING = pattern("evaluating")
TRAINING = pattern("training")
_OPTIMIZER = re.compile(r"optim|^opt|opt$|adam|scaler|sgd", re.IGNORECASE)
_DIRECT = words("updating")
_LEARNS = re.compile(r"update|train|learn|optimi[sz]e|^fit$|backward|improve|gradient", re.IGNORECASE)
#: Objects with a method `update` that has nothing to do with weights.
_NO_LEARNER = pattern("no_learner")
#: Functions that call what they are given.
_CONTROL = words("control")
_LOADING = words("loading")
_TRAIN_OPERATION = re.compile(r"train|optim|update", re.IGNORECASE)
_STORING = words("storing")
_MEMORY = pattern("memory")
_SEEN = re.compile(r"(^|_)(obs|obss|observations?|states?|s|next_state|s_lst|s_list)(_|$|\d)", re.IGNORECASE)
_DONE = re.compile(r"(^|_)(acts?|actions?|a|a_lst|a_list|log_?probs?|logps?)(_|$|\d)", re.IGNORECASE)
_FLAGS = pattern("flags")
_OFF_FLAGS = re.compile(r"^(is_?)?(train|training|explore|learn|learning|train_mode)$", re.IGNORECASE)
_RESETS = words("resetting")
_KEEPING = pattern("keeping")
_RETURN = pattern("return")


#: A loop in which weights are updated: its node, its frame, yes, maybe or no, and the call that updates.
_Loop = tuple[ast.AST | None, Frame | None, str, ast.AST | None]


@dataclass
class Role:
    """What a step is played for, with the reasons."""

    kind: str
    """rollout, evaluation or collection."""
    is_proved: bool
    score: int = 0
    """How strongly the code says that it is an evaluation."""
    home: Frame | None = None
    is_fresh: bool = True
    """Whether its episodes begin after the last update and end before the next."""
    reports: bool = True
    """Whether it sums, keeps or prints what episodes return, as a measurement does and a demonstration need not."""
    reloads: bool = False
    """Whether weights that others may update are loaded between two steps."""
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
    given = [one for item in arguments_of(node) for one in names_in(item)]
    is_kept = any(map(_SEEN.search, given)) and any(map(_DONE.search, given))
    is_kept = is_kept or bool(_MEMORY.search(receiver))
    if name in _STORING:
        return is_kept or len(node.args) >= 4
    return is_kept and name in ("add", "append", "insert", "extend", "put", "add_batch")


class Updates:
    """Answers whether weights are updated in a region of a frame: yes, maybe or no."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._regions: dict[tuple[int, int], tuple[str, ast.AST | None]] = {}
        functions = [one for module in evaluator.index.modules.values() for one in module.functions.values()]
        waiting = [one for one in functions if any(is_direct_update(call) for call in one.calls)]
        callers: dict[str, set[FunctionInfo]] = {}
        for one in functions:
            for call in one.calls:
                callers.setdefault(_called_name(call, one.module), set()).add(one)
        found = set(waiting)
        while waiting:
            fresh = callers.get(waiting.pop().name, set()) - found
            found |= fresh
            waiting.extend(fresh)
        self.names = {one.name for one in found}
        """Names of functions that may lead to an update; what a call really means is decided call by call."""

    def status(self, region: ast.AST, frame: Frame, depth: int = 6) -> tuple[str, ast.AST | None]:
        """Whether weights are updated inside a region of a frame, and by which call."""
        key = (id(region), id(frame))
        if key not in self._regions:
            self._regions[key] = ("no", None)
            found: tuple[str, ast.AST | None] = ("no", None)
            for node in own_nodes(region):
                answer = self._of_call(node, frame, depth) if isinstance(node, ast.Call) else "no"
                if answer == "yes":
                    found = ("yes", node)
                    break
                found = ("maybe", node) if answer == "maybe" and found[0] == "no" else found
            self._regions[key] = found
        return self._regions[key]

    def _of_call(self, call: ast.Call, frame: Frame, depth: int) -> str:
        name = _called_name(call, frame.module)
        receiver = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        # `net.train()` and `net.train(False)` switch a mode.
        is_mode = (
            name == "train" and all(isinstance(one, ast.Constant) for one in call.args) and not call.keywords
        )
        is_named = bool(_LEARNS.search(name) and (call.args or call.keywords)) and not is_mode
        is_named = is_named and not _NO_LEARNER.search(receiver)
        is_object = "__call__" in self.names and isinstance(call.func, ast.Name)
        handed = [one for one in arguments_of(call) if name in _CONTROL and last_name(one) in self.names]
        if not (is_direct_update(call) or name in self.names or handed or is_named or is_object):
            return "no"
        if never_runs(frame, call):
            return "no"
        if is_direct_update(call):
            return "yes"
        found = [item.value for one in handed or [call.func] for item in frame.evaluate(one)]
        answers = [self._of_target(one, None if handed else call, frame, depth) for one in found]
        known = [answer for answer in answers if answer is not None]
        if known:
            return max(known, key=["no", "maybe", "yes"].index)
        is_unread = any(
            (isinstance(value, v.Unknown) and not value.is_neutral)
            or (isinstance(value, v.External) and "()." in value.name and len(call.args) > 1)
            for value in found
        )
        return "maybe" if is_unread and is_named else "no"

    def _of_target(self, value: v.Value, call: ast.Call | None, frame: Frame, depth: int) -> str | None:
        """The answer for one function that a call may mean; None where it means no function of the repository."""
        if isinstance(value, v.Instance):
            method = classes.method(value.info, "__call__")
            value = v.Callable(method, Alternative(value)) if method is not None else value
        if not isinstance(value, v.Callable):
            return None
        function = value.function
        if function.name not in self.names and function.name != "<lambda>":
            return _fills_a_table(function)
        if depth == 0 or not may_enter(function, frame):
            return "maybe"
        inner = frame.enter(function, call, value.receiver, value.parent, value.preset)
        own = {id(node) for node in own_nodes(inner.scope)}
        if any(is_direct_update(one) and id(one) not in own for one in function.calls):
            return "yes"  # a function inside it may be called anywhere
        found = self.status(inner.scope, inner, depth - 1)[0]
        return found if found != "no" else _fills_a_table(function)


def _fills_a_table(function: FunctionInfo) -> str:
    """Whether a method learns without gradients: `learn` that changes an item of the object, as Q-learning does."""
    is_filled = any(
        name.startswith("self.") and any(key is not None for _, key, _ in stores)
        for name, stores in stores_in(function.node).items()
    )
    if not is_filled or not _LEARNS.search(function.name):
        return "no"
    return "yes" if re.search(r"learn|train", function.name) else "maybe"


def _called_name(call: ast.Call, module: ModuleInfo) -> str:
    name = last_name(call.func)
    return module.imports.get(name, name).rsplit(".", 1)[-1] if isinstance(call.func, ast.Name) else name


def decide_role(updates: Updates, play: Play) -> Role:
    """What one play is for."""
    site, frame = play.site, play.frame
    chain = frame.chain()
    loop, home, status, call = _learning_loop(updates, play)
    inside = chain[chain.index(home) + 1 :] if home is not None else chain[1:]
    called = [(one, one.function.name) for one in chain if one.function is not None]
    names = [name for one, name in called if one in (inside or chain[-1:])]
    names += [name for one, name in called if one not in inside][-1:]
    receiver = last_name(site.receiver) if site.receiver is not None else ""
    is_fresh, is_reset_below = _is_fresh(play, home, loop)
    around = _episode_nodes(play, home, loop)
    loops = loops_around(frame, site.call)
    inner = own_nodes(loops[-1]) if loops else ()
    keeps = any(stores(node) for node in around)
    says = [name for name in names if EVALUATING.search(name) and not re.search(r"^train|^main", name)]
    flags = [*_call_flags(play), *(flag for one in chain[1:] for flag in given_flags(one))]
    learns = [name for name in names if TRAINING.search(name)]
    role = Role("evaluation", True, home=home, is_fresh=is_fresh, reports=_reports(play))
    script = play.script.rsplit("/", 1)[-1]
    role.score = 3 * bool(says) + 3 * bool(flags) + 2 * bool(EVALUATING.search(receiver))
    role.score += 2 * bool(EVALUATING.search(script)) + (home is not None and is_fresh)
    against = 3 * keeps + 2 * bool(learns and not says) + 3 * (status == "yes" and not is_fresh)
    if site.is_text:
        given = [name for one in arguments_of(site.call) for name in names_in(one)]
        is_said = says or any(map(EVALUATING.search, given))
        role.kind = "evaluation" if is_said else "collection" if status == "no" else "rollout"
        role.is_proved, role.is_fresh = False, True
        role.doubts.add("whether these texts are written to learn or to measure was told by names")
        return role
    if loop is not None and home is not None and status == "yes":
        line = getattr(loop, "lineno", 0)
        role.marks.append(Mark(home.module.path, line, "learning loop: weights are updated in here"))
    if status == "yes" and not is_fresh:
        role.kind = "rollout"
    elif status == "yes" and against > role.score:
        role.kind, role.is_proved = "rollout", keeps and not says
    elif status == "yes":
        role.is_proved = against == 0 and is_reset_below
    elif status == "maybe":
        role.kind = "rollout" if against >= role.score and not (is_fresh and not keeps) else "evaluation"
        role.is_proved = False
        role.doubts.add(f"whether {describe(call)} changes weights is not known")
    else:
        # Outside any learning loop it may collect what the same script learns from.
        learner = keeps and any(updates.status(one.scope, one)[0] != "no" for one in chain)
        role.kind = "rollout" if learner and role.score < 3 else "evaluation"
        role.is_proved = not keeps and not learns
    loads = [node for node in around if isinstance(node, ast.Call) and last_name(node.func) in _LOADING]
    role.reloads = any(node in loads and not _further_conditions(frame, node, site.call) for node in inner)
    if loads:
        role.is_proved = False
        role.doubts.add(f"weights are loaded while it is played (line {loads[0].lineno})")
    if not role.is_proved and not role.doubts:
        role.doubts.add(f"whether {site.module.path}:{site.call.lineno} plays to learn or to measure")
    return role


def _learning_loop(updates: Updates, play: Play) -> _Loop:
    """The innermost loop around a step, in any frame of its chain, in which weights are updated."""
    chain = play.frame.chain()
    perhaps: _Loop = (None, None, "no", None)
    for position in range(len(chain) - 1, -1, -1):
        here = chain[position]
        inner = play.site.call if here is play.frame else chain[position + 1].call
        regions = [*reversed(loops_around(here, inner))] if inner is not None else []
        if here.is_handed and here.function is not None and here is not chain[0]:
            regions.append(here.scope)  # a worker or the body of `scan` runs again and again
        places = [(region, here) for region in regions]
        if here.is_handed and here.caller is not None:
            places.append((here.caller.scope, here.caller))
        for region, frame in places:
            status, call = updates.status(region, frame)
            if status == "yes":
                return region, frame, "yes", call
            if status == "maybe" and perhaps[2] == "no" and frame is here:
                perhaps = (region, here, "maybe", call)
    return perhaps


def _is_fresh(play: Play, home: Frame | None, loop: ast.AST | None) -> tuple[bool, bool]:
    """Whether the episode begins inside the learning loop, and whether a function below it resets the environment."""
    if home is None:
        return True, True
    chain = play.frame.chain()
    receiver = last_name(play.site.receiver) if play.site.receiver is not None else ""
    name, found = receiver, None
    inner: ast.AST | None = play.site.call
    for here in reversed(chain[chain.index(home) + 1 :]):
        resets = [node for node in own_nodes(here.scope) if _resets(node, name)]
        if resets:  # a reset under a condition may not happen
            found = any(not _further_conditions(here, node, inner or here.scope) for node in resets)
        # The environment may have another name in the function that hands it on.
        binding, inner = here.bindings.get(name), here.call
        name = last_name(binding.expression) if binding and binding.expression else receiver
    if found is not None:
        return True, found
    if play.frame is not home or loop is None:
        return False, False
    # In the loop's own body: the environment is reset before a loop of its own that learns nothing.
    loops = [one for one in loops_around(home, play.site.call) if one is not loop]
    own = next((one for one in loops if place_of(one) > place_of(loop)), None)
    if own is None:
        return False, False
    reset = any(
        _resets(node, receiver) and not _further_conditions(home, node, own)
        for node in own_nodes(parent_of(own) or own)
        if place_of(loop) < place_of(node) < place_of(play.site.call)
    )
    rest = {node for node in own_nodes(loop) if isinstance(node, ast.Call)} - {
        *own_nodes(own),
        play.site.call,
    }
    others = any(last_name(node.func) == "step" and not is_direct_update(node) for node in rest)
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


def _episode_nodes(play: Play, home: Frame | None, loop: ast.AST | None) -> list[ast.AST]:
    """The nodes that run with a step: its loop, and what the frames between it and the learning loop do."""
    chain = play.frame.chain()
    loops = loops_around(play.frame, play.site.call)
    own = [one for one in loops if one is not loop] or loops
    region: ast.AST = own[0] if own else play.frame.scope
    if play.frame is not home and home is not None:
        region = play.frame.scope
    start = chain.index(home) + 1 if home is not None else max(len(chain) - 2, 0)
    between = [one for one in chain[start:-1] if one.function is not None and one is not chain[0]]
    return [node for one in (region, *(here.scope for here in between)) for node in own_nodes(one)]


def _reports(play: Play) -> bool:
    """Whether anything on the way to a step sums, keeps, prints or gives back what episodes return."""
    for frame in play.frame.chain():
        for node in own_nodes(frame.scope):
            is_kept = isinstance(node, ast.AugAssign | ast.Return | ast.Yield | ast.BinOp)
            is_kept = is_kept or (isinstance(node, ast.Call) and bool(_KEEPING.search(last_name(node.func))))
            if is_kept and any(map(_RETURN.search, map(str.lower, names_in(node)))):
                return True
    return False


def given_flags(frame: Frame) -> list[str]:
    """Parameters of a frame that say that it measures: `training=False`, `evaluate=True`."""
    return [
        name
        for name, binding in frame.bindings.items()
        if (_FLAGS.match(name) or _OFF_FLAGS.match(name)) and not binding.is_default
        if [item.value for item in binding.evaluate(name)] == [v.KnownValue(bool(_FLAGS.match(name)))]
    ]


def _call_flags(play: Play) -> list[str]:
    """Literal flags at calls in the stepping function: `act(obs, deterministic=True)`, `policy.eval()`."""
    found = []
    loops = loops_around(play.frame, play.site.call)
    region = play.frame.scope if play.frame.function is not None else loops[-1] if loops else play.site.call
    for node in own_nodes(region):
        if isinstance(node, ast.Call):
            given = [
                (one.arg, one.value.value) for one in node.keywords if isinstance(one.value, ast.Constant)
            ]
            for name, value in given:
                kind = _FLAGS if value is True else _OFF_FLAGS if value is False else None
                found += [name] if name and kind and kind.match(name) else []
            if last_name(node.func) == "eval" and isinstance(node.func, ast.Attribute) and not node.args:
                found.append("eval()")
    return found
