"""What a single call means for learning: whether it updates weights, keeps a transition, or starts a worker."""

from __future__ import annotations

import ast
import re

from gapfloor.audit.interpreter.values import Frame
from gapfloor.audit.reading.index import ModuleInfo, last_name, names_in

_OPTIMIZER = re.compile(r"optim|^opt|opt$|adam|scaler|sgd", re.IGNORECASE)
_DIRECT = frozenset(
    {"backward", "apply_gradients", "minimize", "train_on_batch", "apply_updates", "train_step"}
)
_LEARNER = re.compile(
    r"agent|policy|model|algo|learner|ppo|trainer|self|actor|critic|net|optim", re.IGNORECASE
)
_STORES = frozenset(
    {
        "store",
        "store_transition",
        "remember",
        "push",
        "add_transition",
        "add_experience",
        "add_sample",
        "observe",
    }
    | {
        "add_path",
        "add_episode",
        "store_episode",
        "add_step",
        "save_transition",
        "store_step",
        "insert_transition",
    }
)
_MEMORY = re.compile(
    r"buffer|memory|replay|storage|rollout|trajector|transitions|batch|^episode$|^data$", re.IGNORECASE
)
_SEEN = re.compile(r"(^|_)(obs|obss|observations?|states?|s_lst|s_list)(_|$)", re.IGNORECASE)
_DONE = re.compile(r"(^|_)(acts?|actions?|a_lst|a_list|log_?probs?|logps?)(_|$)", re.IGNORECASE)
_TRAIN_OPERATION = re.compile(r"train|optim|update", re.IGNORECASE)


def called_name(call: ast.Call, module: ModuleInfo) -> str:
    """The name of the function that is called, as its own file calls it: `from actor import update as update_actor`."""
    if isinstance(call.func, ast.Name) and call.func.id in module.imports:
        return module.imports[call.func.id].rsplit(".", 1)[-1]
    return last_name(call.func)


def is_scanned(frame: Frame) -> bool:
    """Whether a frame is the body of a loop of JAX: its function was handed to `scan` or the like."""
    original = getattr(frame.call, "_worker_of", None)
    return original is not None and last_name(original) in ("scan", "fori_loop", "while_loop")


def starts_worker(call: ast.AST) -> bool:
    """Whether a frame was entered by handing its function to a process, a thread or an actor."""
    original = getattr(call, "_worker_of", None)
    return original is not None and last_name(original) in (
        "Process",
        "Thread",
        "ActorThread",
        "start_processes",
        "spawn",
    )


def may_learn(call: ast.Call) -> bool:
    """Whether a call by its form could learn: `net.train()` switches a mode, `bar.update(1)` keeps books."""
    name = last_name(call.func)
    if name in ("train", "eval") and not any(not isinstance(item, ast.Constant) for item in call.args):
        return not isinstance(call.func, ast.Attribute) or bool(call.keywords)
    if isinstance(call.func, ast.Attribute) and name in ("update", "add", "append", "set", "push"):
        return bool(_LEARNER.search(last_name(call.func.value)))
    return True


def stores(node: ast.AST) -> bool:
    """Whether a call keeps a transition or an episode for the update."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in _STORES:
        return True
    is_addition = node.func.attr in ("add", "append", "insert", "push")
    return is_addition and bool(_MEMORY.search(last_name(node.func.value)))


def collects(nodes: list[ast.AST]) -> bool:
    """Whether both what is seen and what is done are appended to lists: an evaluation keeps rewards alone."""
    kept = {
        last_name(node.func.value)
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "extend", "add")
    }
    return any(_SEEN.search(name) for name in kept) and any(_DONE.search(name) for name in kept)


def receiver_of(call: ast.Call) -> ast.expr:
    """What a method is called on; the function itself where it is none."""
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


def has_receiver(reset: ast.Call, receiver: ast.expr) -> bool:
    """Whether a method is called on an object of the same name."""
    return isinstance(reset.func, ast.Attribute) and last_name(reset.func.value) == last_name(receiver)


def is_direct_update(call: ast.Call) -> bool:
    """Whether a call itself changes weights: a backward pass, an optimizer's step, a training operation."""
    name = last_name(call.func)
    if name in _DIRECT:
        return True
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if name in ("step", "update") and receiver is not None and _OPTIMIZER.search(last_name(receiver)):
        return True
    if name == "train" and receiver is not None and len(call.args) >= 2:
        return True
    if name == "run" and receiver is not None and "sess" in last_name(receiver) and call.args:
        return any(_TRAIN_OPERATION.search(word) and word != "train_model" for word in names_in(call.args[0]))
    return False
