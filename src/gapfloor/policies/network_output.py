"""The logits in what a user's network returns: a tensor, a tuple, a dict or a distribution.

Networks of actor-critic agents return more than logits. Which part holds them is decided at the first call, said once,
and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.policies.notes import note_once

#: Names under which networks commonly return logits, the clearest first.
_LOGIT_NAMES = ("logits", "action_logits", "policy_logits", "action_dist_inputs", "pi", "policy", "actor")


@dataclass
class LogitsChoice:
    """Finds the logits in a network's output, in the same part at every call."""

    name: str
    """What the network is called in a sentence."""
    _path: tuple[Any, ...] | None = None

    def find(self, output: Any) -> Any:
        """The part of `output` that holds logits."""
        if self._path is None:
            self._path = self._choose(output)
        for step in self._path:
            output = output.logits if step is _LOGITS_OF_DISTRIBUTION else output[step]
        return output

    def _choose(self, output: Any) -> tuple[Any, ...]:
        if _is_array(output):
            return ()
        if hasattr(output, "log_prob"):
            return self._of_distribution(output)
        if isinstance(output, Mapping):
            return self._of_parts(dict(output), [each for each in _LOGIT_NAMES if each in output])
        if isinstance(output, Sequence) and not isinstance(output, (str, bytes)):
            return self._of_parts(dict(enumerate(output)), [])
        raise PolicyError(
            f"{self.name} returned a {type(output).__name__}, not logits: return an array of the shape [rows, actions]."
        )

    def _of_distribution(self, output: Any) -> tuple[Any, ...]:
        if not _is_array(getattr(output, "logits", None)):
            raise PolicyError(
                f"{self.name} returned a {type(output).__name__}, which is not a distribution over discrete actions: "
                "return logits of the shape [rows, actions]."
            )
        note_once(f"{self.name}: the logits are those of the {type(output).__name__} that it returns.")
        return (_LOGITS_OF_DISTRIBUTION,)

    def _of_parts(self, parts: dict[Any, Any], named: list[Any]) -> tuple[Any, ...]:
        candidates = named[:1] or [
            step for step, each in parts.items() if hasattr(each, "log_prob") or _could_be_logits(each)
        ]
        if len(candidates) != 1:
            shapes = ", ".join(f"{step}: {_describe(each)}" for step, each in parts.items())
            raise PolicyError(
                f"{self.name} returned several things ({shapes}), and {len(candidates) or 'none'} of them could be "
                "logits: return the logits alone."
            )
        step = candidates[0]
        note_once(f"{self.name}: the logits are its output {step!r} ({_describe(parts[step])}).")
        return (step, *self._choose(parts[step]))


class _LogitsAttribute:
    """Stands for the attribute of a distribution that holds its logits."""


_LOGITS_OF_DISTRIBUTION = _LogitsAttribute()


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _could_be_logits(value: Any) -> bool:
    # A value head has one column and a recurrent state three axes.
    return _is_array(value) and len(value.shape) == 2 and value.shape[1] > 1


def _describe(value: Any) -> str:
    return f"shape {tuple(value.shape)}" if _is_array(value) else type(value).__name__
