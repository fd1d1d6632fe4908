"""Flags that switch learning off: the loop that trains, played again with `training=False` or `agent.eval_mode = True`.

A call that would learn counts as switched off only where its condition is decided by a flag that a call gives, that a
default leaves alone, or that was set on the object before. A setting or a counter switches nothing off.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.objects import guards_of
from gapfloor.audit.interpreter.values import Alternative, Frame, KnownValue, Mark, describe

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

_FLAGS = frozenset({"argument", "default"})


def _is_flag(used: list[Alternative]) -> bool:
    """Whether the constants that decide a condition are flags: truth values or words, and nothing that is counted."""
    flags = [item for item in used if item.origin != "literal"]
    return bool(flags) and all(
        item.origin in _FLAGS
        and isinstance(item.value, KnownValue)
        and isinstance(item.value.value, bool | str | None)
        for item in flags
    )


class LearningSwitches:
    """Remembers which calls are switched off in which frames, and by which lines."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._off: dict[tuple[int, int], bool] = {}
        self._marks: dict[int, list[Mark]] = {}
        self._frames: list[Frame] = []  # keeps frames alive, so that an id stays theirs

    def is_off(self, node: ast.AST, frame: Frame) -> bool:
        """Whether flags keep a call of a frame from being made."""
        key = (id(node), id(frame))
        if key not in self._off:
            self._off[key] = False
            self._frames.append(frame)
            for guard in guards_of(frame, node):
                if any(isinstance(part, ast.Call) for part in ast.walk(guard.test)):
                    continue  # a function's answer is not a flag
                known, used = self.evaluator.truth(guard.test, guard.frame)
                if known is None or known == guard.holds or not _is_flag(used):
                    continue
                self._off[key] = True
                wanted = describe(guard.test) if guard.holds else f"not {describe(guard.test)}"
                line = getattr(guard.test, "lineno", 0)
                marks = [Mark(frame.module.path, line, f"learning only if `{wanted}`, which is off here")]
                marks += [mark for item in used for mark in item.marks]
                self._marks.setdefault(id(frame), []).extend(marks)
        return self._off[key]

    def pass_on(self, inner: Frame, outer: Frame) -> bool:
        """Count what is switched off in a called frame for its caller; whether there was anything."""
        found = self._marks.get(id(inner), [])
        self._marks.setdefault(id(outer), []).extend(found)
        return bool(found)

    def marks(self, frame: Frame) -> tuple[Mark, ...]:
        """The lines that switch learning off in a frame, or in what it calls."""
        return tuple(dict.fromkeys(self._marks.get(id(frame), ())))
