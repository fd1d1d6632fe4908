"""Where the policy is updated, and whether an episode's steps can span several versions of it.

In-loop means: the environment lives on while the weights change. An evaluation that starts its own episodes and
plays them between two updates measures frozen weights, even when a training loop calls it.
"""

from __future__ import annotations

import ast
import re

from gapfloor.audit.interpreter.calls import may_enter
from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.objects import guards_of
from gapfloor.audit.interpreter.values import Callable, Environment, Frame, Unknown
from gapfloor.audit.judgement.explore import EVALUATING
from gapfloor.audit.judgement.learning_calls import (
    called_name,
    collects,
    has_receiver,
    is_direct_update,
    is_scanned,
    may_learn,
    receiver_of,
    starts_worker,
    stores,
)
from gapfloor.audit.judgement.reachable_names import handed_over, method_of
from gapfloor.audit.judgement.switches import LearningSwitches
from gapfloor.audit.reading.index import FunctionInfo, last_name, own_nodes

_LOOPS = ast.For | ast.While | ast.AsyncFor
_CONTROL = frozenset({"scan", "fori_loop", "while_loop", "cond", "switch"})
_RESETS = frozenset({"reset", "reset_to_level"})
_DEEPEST_SWITCH = 4
_TRAINING = re.compile(r"train|rollout|explor|collect|sample_(trajector|episode|batch|data)", re.IGNORECASE)


class LearningModel:
    """Knows which functions of a repository update weights."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._updating: set[FunctionInfo] = set()
        self._names: set[str] = set()
        self._resets: set[str] | None = None
        self._regions: dict[tuple[int, int], bool] = {}
        self.switches = LearningSwitches(evaluator)
        self._close()

    def _close(self) -> None:
        functions = [
            item for module in self.evaluator.index.modules.values() for item in module.functions.values()
        ]
        called: dict[int, set[str]] = {}
        for function in functions:
            names = set()
            for call in function.calls:
                if may_learn(call):
                    names.add(called_name(call, function.module))
                if is_direct_update(call):
                    self._updating.add(function)
            called[id(function)] = names
        changed = True
        while changed:
            # Names that many unrelated things share would make everything an update.
            self._names = {item.name for item in self._updating} - {
                "step",
                "__init__",
                "run",
                "reset",
                "forward",
                "main",
            }
            fresh = {
                item for item in functions if item not in self._updating and called[id(item)] & self._names
            }
            changed = bool(fresh)
            self._updating |= fresh

    def updates_in(self, region: ast.AST, frame: Frame) -> bool:
        """Whether the policy is updated somewhere inside `region` of a frame."""
        key = (id(region), id(frame))
        if key not in self._regions:
            self._regions[key] = any(
                isinstance(node, ast.Call)
                and self._is_update(node, frame)
                and not self.switches.is_off(node, frame)
                for node in own_nodes(region)
            )
        return self._regions[key]

    def _is_update(self, call: ast.Call, frame: Frame, depth: int = _DEEPEST_SWITCH) -> bool:
        if is_direct_update(call) or self._hands_over_update(call, frame):
            return True
        name = called_name(call, frame.module)
        updating = [item for item in self._updating if item.name == name]
        if not updating:
            return False
        targets = self.evaluator.evaluate(call.func, frame)
        known = [item.value for item in targets if isinstance(item.value, Callable)]
        if known:
            return any(
                one.function in self._updating and not self._is_off_inside(one, call, frame, depth)
                for one in known
            )
        is_open = any(isinstance(item.value, Unknown) for item in targets)
        if not may_learn(call):
            return False
        return is_open and name in self._names and bool(call.args or call.keywords)

    def _hands_over_update(self, call: ast.Call, frame: Frame) -> bool:
        """Whether a loop or a branch of JAX is given a function that updates: `jax.lax.switch(index, [one, other])`."""
        if last_name(call.func) not in _CONTROL:
            return False
        names = [item for item in handed_over(call) if last_name(item) in self._names]
        return any(
            isinstance(one.value, Callable) and one.value.function in self._updating
            for item in names
            for one in self.evaluator.evaluate(item, frame)
        )

    def _is_off_inside(self, target: Callable, call: ast.Call, frame: Frame, depth: int) -> bool:
        """Whether a flag that this call gives, or that was set before it, keeps a function from updating anything."""
        if depth == 0 or not may_enter(target.function, frame):
            return False
        inner = self.evaluator.bound_frame(
            target.function, call, frame, target.receiver, target.parent, target.preset
        )
        own = {id(node) for node in own_nodes(inner.scope)}
        doubtful = [
            one
            for one in target.function.calls
            if is_direct_update(one) or (called_name(one, inner.module) in self._names and may_learn(one))
        ]
        if any(id(one) not in own for one in doubtful):
            return False  # a function inside it may be called anywhere
        # The unconditional updates first: most functions have one, and nothing else needs to be evaluated then.
        waiting = []
        for one in doubtful:
            is_guarded = bool(guards_of(inner, one))
            if not is_guarded and is_direct_update(one):
                return False
            if not is_guarded or not self.switches.is_off(one, inner):
                waiting.append(one)
        if any(self._is_update(one, inner, depth - 1) for one in waiting):
            return False
        return self.switches.pass_on(inner, frame)

    def loops_around(self, frame: Frame, node: ast.AST) -> list[ast.AST]:
        """The loops around `node` in its frame, outermost first."""
        found: list[ast.AST] = []
        # A call that a library makes has no place of its own; the call that handed the function over has one.
        current: ast.AST | None = frame.module.parents.get(getattr(node, "_worker_of", node))
        while current is not None and current is not frame.scope:
            if isinstance(current, _LOOPS):
                found.append(current)
            current = frame.module.parents.get(current)
        return found[::-1]

    def learning_loop(self, frame: Frame, node: ast.AST) -> tuple[Frame, ast.AST] | None:
        """The innermost loop around a step, in any frame of its chain, in which weights are updated."""
        chain = frame.chain()
        for position in range(len(chain) - 1, -1, -1):
            here = chain[position]
            inner = node if here is frame else chain[position + 1].call
            if inner is None:
                continue
            for loop in reversed(self.loops_around(here, inner)):
                if self.updates_in(loop, here):
                    return here, loop
            if is_scanned(here) and here.function in self._updating:
                return here, here.scope
        return self._learner_of_worker(chain)

    def _learner_of_worker(self, chain: list[Frame]) -> tuple[Frame, ast.AST] | None:
        """A worker process or thread plays while the function that started it learns."""
        for position in range(len(chain) - 1, 0, -1):
            call, home = chain[position].call, chain[position - 1]
            if call is None or home.function is None or not starts_worker(call):
                continue
            if self.updates_in(home.scope, home) or any(
                item in self._updating
                for item in home.module.functions.values()
                if item.outer is home.function
            ):
                return home, home.scope
        return None

    def serves_learning(self, frame: Frame) -> bool:
        """Whether a worker process was started, directly or not, by code that goes on to update weights."""
        return any(
            here.function in self._updating
            if here.function is not None
            else self.updates_in(here.scope, here)
            for here in frame.chain()[:-1]
        )

    def is_fresh(
        self, frame: Frame, node: ast.Call, environment: Environment | None, home: Frame, loop: ast.AST
    ) -> bool:
        """Whether the step belongs to episodes begun inside the loop and ended before the next update."""
        if environment is not None and self._is_made_inside(environment, home, loop):
            return True
        chain = frame.chain()
        start = chain.index(home)
        for position in range(len(chain) - 1, start - 1, -1):
            here = chain[position]
            inner = node if here is frame else chain[position + 1].call
            if inner is not None and self._resets_before(here, inner, node, loop if here is home else None):
                return True
        return frame is home and self._is_played_apart(frame, node, loop)

    def _is_played_apart(self, frame: Frame, node: ast.Call, loop: ast.AST) -> bool:
        """Whether an episode is played next to the training rollout of the same loop, from its reset to its end.

        Nothing is learned or kept in it, while another step of the same environment in the loop is learned from, or
        the loop steps another environment and this one only now and then.
        """
        receiver = receiver_of(node)
        others = [
            item
            for item in own_nodes(loop)
            if isinstance(item, ast.Call)
            and last_name(item.func) == "step"
            and item is not node
            and has_receiver(item, receiver)
        ]
        episode = self._episode(frame, node, loop)
        inside = [item for statement in episode for item in (statement, *own_nodes(statement))]
        if not episode or any(item in inside for item in others) or collects(inside):
            return False
        if any(stores(item) for item in inside) or any(self.updates_in(item, frame) for item in episode):
            return False
        if not others:
            return self._is_interlude(frame, node, loop, episode)
        around = [self.loops_around(frame, item)[-1:] for item in others]
        return any(
            self.updates_in(one, frame) or any(stores(item) for item in own_nodes(one))
            for inner in around
            for one in inner
        )

    def _is_interlude(self, frame: Frame, node: ast.Call, loop: ast.AST, episode: list[ast.stmt]) -> bool:
        """Whether an environment is reset and played under a condition, in a loop that steps another one always."""
        # A reset under a condition may not happen; a step without a loop of its own is one of a longer episode.
        playing = self.loops_around(frame, node)[-1:]
        own = [episode[-1], *own_nodes(episode[-1])]
        if not isinstance(episode[0], ast.Assign | ast.Expr) or not any(item in own for item in playing):
            return False
        condition = frame.module.parents[episode[0]]
        inside = own_nodes(condition)
        return (
            isinstance(condition, ast.If)
            and condition is not loop
            and not self.updates_in(condition, frame)
            and any(
                last_name(item.func) == "step" and item.args and not is_direct_update(item)
                for item in own_nodes(loop)
                if isinstance(item, ast.Call) and item not in inside
            )
        )

    def _episode(self, frame: Frame, node: ast.Call, loop: ast.AST) -> list[ast.stmt]:
        """The statements from the reset of an environment to the one that steps it, in one block inside the loop."""
        current: ast.AST = node
        while current is not loop and current in frame.module.parents:
            parent = frame.module.parents[current]
            for name in ("body", "orelse", "finalbody"):
                block = getattr(parent, name, None)
                if not isinstance(block, list) or current not in block:
                    continue
                position = block.index(current)
                for start in range(position - 1, -1, -1):
                    if any(
                        isinstance(item, ast.Call)
                        and last_name(item.func) == "reset"
                        and has_receiver(item, receiver_of(node))
                        for item in own_nodes(block[start])
                    ):
                        return block[start : position + 1]
            current = parent
        return []

    def feeds_learning(self, frame: Frame, node: ast.Call, home: Frame) -> bool:
        """Whether episodes that are played whole are stored for the update, and nothing calls them an evaluation."""
        chain = frame.chain()
        inside = chain[chain.index(home) :]
        names = [here.function.name for here in inside[1:] if here.function is not None]
        receiver = last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if any(EVALUATING.search(name) for name in [*names, receiver]) or self._is_marked(frame, node):
            return False
        if any(self._is_switched_off(here) for here in inside):
            return False  # the very code that trains, told not to learn
        if any(_TRAINING.search(name) for name in names):
            return True
        regions = [item for here in inside if here is not frame for item in own_nodes(here.scope)]
        around = self._around_step(frame, node)
        return any(stores(item) for item in [*regions, *around]) or (frame is home and collects(around))

    def _is_switched_off(self, frame: Frame) -> bool:
        """Whether a frame would update or store something, and flags keep it from all of that."""
        doubtful = [
            node
            for node in own_nodes(frame.scope)
            if isinstance(node, ast.Call) and (stores(node) or called_name(node, frame.module) in self._names)
        ]
        off = [node for node in doubtful if self.switches.is_off(node, frame)]
        waiting = [node for node in doubtful if node not in off]
        is_idle = not any(stores(node) or self._is_update(node, frame) for node in waiting)
        return is_idle and bool(self.switches.marks(frame))

    def collects_for_learning(self, frame: Frame, node: ast.Call) -> bool:
        """Whether a step outside the learning loop collects observations and actions, and its function learns."""
        return self.updates_in(frame.scope, frame) and collects(self._around_step(frame, node))

    def _around_step(self, frame: Frame, node: ast.Call) -> list[ast.AST]:
        """What belongs to a step in its frame: the largest statement with no other step, and what follows up to one."""
        others = [
            item
            for item in own_nodes(frame.scope)
            if isinstance(item, ast.Call)
            and last_name(item.func) == "step"
            and item is not node
            and isinstance(item.func, ast.Attribute)
            and has_receiver(item, receiver_of(node))
        ]
        if not others:
            return [*own_nodes(frame.scope)]
        current: ast.AST = node
        parents = frame.module.parents
        while current is not frame.scope:
            parent = parents[current]
            inside = {id(item) for item in own_nodes(parent)}
            if any(id(item) in inside for item in others):
                break
            current = parent
        found = [*own_nodes(current)]
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parents.get(current), block, None)
            if not isinstance(statements, list) or current not in statements:
                continue
            for statement in statements[statements.index(current) + 1 :]:
                nodes = own_nodes(statement)
                if any(item in nodes for item in others):
                    break
                found.extend(nodes)
        return found

    def is_ambiguous(self, frame: Frame, node: ast.Call, home: Frame) -> bool:
        """Whether a rollout might be an evaluation: a helper resets and steps in one loop, or a block says so."""
        if self._is_marked(frame, node):
            return True
        if frame is home:
            return False
        loops = self.loops_around(frame, node)
        if not loops or self.updates_in(frame.scope, frame):
            return False
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        return any(
            isinstance(item, ast.Call)
            and last_name(item.func) == "reset"
            and (receiver is None or has_receiver(item, receiver))
            and frame.module.order[item] < frame.module.order[node]
            for item in own_nodes(loops[-1])
        )

    def _is_marked(self, frame: Frame, node: ast.AST) -> bool:
        """Whether the step is said to measure, in any frame of its chain.

        `with agent.eval_mode():` around it says so, and so does `self.test_collector.collect(agent)` on the way to it.
        """
        chain = frame.chain()
        for position, here in enumerate(chain):
            current: ast.AST | None = node if here is frame else chain[position + 1].call
            player = method_of(current) if isinstance(current, ast.Call) and here is not frame else None
            if player is not None and EVALUATING.search(last_name(player.value)):
                return True
            while current is not None and current is not here.scope:
                if isinstance(current, ast.With) and any(
                    re.search(r"eval|test", last_name(item.context_expr)) for item in current.items
                ):
                    return True
                current = here.module.parents.get(current)
        return False

    def _resetting(self) -> set[str]:
        """Names of small functions that reset an environment and do not step it."""
        if self._resets is None:
            self._resets = {
                item.name
                for module in self.evaluator.index.modules.values()
                for item in module.functions.values()
                if item.name not in ("reset", "__init__", "main", "step")
                and "reset" in {last_name(call.func) for call in item.calls}
                and "step" not in {last_name(call.func) for call in item.calls}
                and re.search(r"reset|init|begin|start", item.name)
            }
        return self._resets

    def _is_made_inside(self, environment: Environment, home: Frame, loop: ast.AST) -> bool:
        chain = environment.frame.chain()
        if home not in chain:
            return False
        position = chain.index(home)
        at = environment.call if position == len(chain) - 1 else chain[position + 1].call
        return at is not None and loop in self.loops_around(home, at)

    def _resets_before(self, frame: Frame, inner: ast.AST, step: ast.Call, loop: ast.AST | None) -> bool:
        stepped = method_of(step)
        receiver = stepped.value if stepped is not None else None
        loops = self.loops_around(frame, inner)
        for node in own_nodes(loop if loop is not None else frame.scope):
            if not isinstance(node, ast.Call):
                continue
            is_helper = last_name(node.func) in self._resetting() and node is not inner
            method = method_of(node)
            if not is_helper and (method is None or method.attr not in _RESETS):
                continue
            is_other = method is not None and last_name(method.value) != last_name(receiver or method.value)
            if is_other and not is_helper:
                continue
            # A call that a library makes has no place of its own; the call that handed the function over has one.
            place = inner if inner in frame.module.order else getattr(inner, "_worker_of", None)
            if place not in frame.module.order or frame.module.order[node] > frame.module.order[place]:
                continue
            around = self.loops_around(frame, node)
            if loops and loops[-1] in around:
                continue  # a reset inside the stepping loop itself follows a finished episode
            shared = [item for item in around if item in loops]
            region = shared[-1] if shared else frame.scope
            if not self.updates_in(region, frame):
                return True
        return False
