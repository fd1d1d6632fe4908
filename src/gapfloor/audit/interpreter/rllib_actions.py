"""What RLlib's `compute_action` does for an agent whose class is chosen by name: the experiment files decide.

Source: ray-project/ray rllib/algorithms/algorithm.py, compute_single_action(explore=None): without the argument the
setting `explore` holds (True by default); rllib/utils/exploration: StochasticSampling draws while it explores, and
every exploration class is deterministic when `explore` is False.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.flags import flagged
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Frame,
    Guard,
    Mark,
    Option,
    Unknown,
    describe,
)

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

METHODS = frozenset({"compute_action", "compute_actions", "compute_single_action"})


def imports_rllib(frame: Frame) -> bool:
    """Whether the file of a frame imports Ray."""
    return any(name.split(".")[0] == "ray" for name in frame.module.imports.values())


def rllib_action(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """The action by the call's own `explore`, else by the experiment files where all of them agree."""
    script = frame.chain()[0].module
    kinds = {
        str(one.value).rsplit(".", 1)[-1]
        for one in evaluator.options.in_files(("exploration_config", "type"), script)
    }
    drawn = "sampled" if kinds == {"StochasticSampling"} else "unresolved"
    mark = Mark(frame.module.path, call.lineno, "RLlib chooses the action by its setting 'explore'")
    if any(keyword.arg in ("explore", None) for keyword in call.keywords):
        return flagged("explore", None, None, drawn, "argmax", call, frame, mark)
    entry = evaluator.options.from_files(("config", "explore"), script)
    if entry is None or not entry.has_default or not isinstance(entry.default, bool):
        return (
            Alternative(Unknown(f"{describe(call)}, which depends on the setting 'explore'"), marks=(mark,)),
        )
    test = ast.copy_location(ast.Name("explore", ast.Load()), call)
    option = Option("explore", entry.default, has_default=True)
    frame.cache[test] = (Alternative(option, marks=(entry.mark,), origin="option"),)
    return (
        Alternative(Action(drawn, call, frame, True), (Guard(test, True, frame),), (mark, entry.mark)),
        Alternative(Action("argmax", call, frame, True), (Guard(test, False, frame),), (mark, entry.mark)),
    )
