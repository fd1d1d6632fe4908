"""Logits kept by frame: a policy without state is not asked twice about the same image.

Agents often see an image again: a greedy agent that walks into a wall sees the same one for the rest of its episode.
The results are those without the cache, bit for bit. Frames are compared byte by byte (they are the keys of a
dictionary), and a batch of fewer rows is only computed where its logits were found to be the same as in the whole
batch: in ONNX Runtime that holds for any number of rows, in torch mostly for the whole batch alone. Vectors of real
numbers hardly ever come twice and are not kept.

Rows of `make bench`: sampled-miner and greedy-miner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.policies.policy import Logits, Policy, StatefulPolicy, as_logits

#: Memory for the frames of one policy, in bytes.
MOST_BYTES = 128 << 20

#: Numbers of rows that are tried; more than these are computed as the whole batch.
_MOST_ROWS = 32


def with_frame_cache(policy: Policy | StatefulPolicy) -> Policy | StatefulPolicy:
    """The policy with a cache, where nothing but its content and the frame can change its logits: not a user's code."""
    is_on_cpu = getattr(policy, "device", "") == "cpu"
    is_known = getattr(policy, "is_function_of_content", False) is True
    return (
        CachedPolicy(policy) if is_known and is_on_cpu and not isinstance(policy, StatefulPolicy) else policy
    )


class CachedPolicy:
    """A policy without state whose logits are kept by frame; every batch must have the same number of rows."""

    def __init__(self, policy: Policy, *, most_bytes: int = MOST_BYTES) -> None:
        self._policy = policy
        self._most_bytes = most_bytes
        self._kept: dict[bytes, Logits] = {}
        self._most_frames = 1
        self._last: list[tuple[bytes, Logits | None]] = []
        self._sizes: npt.NDArray[np.int64] | None = None
        """Numbers of rows that may be computed; None before the first batch, empty where nothing may be kept."""
        self.n_computed = 0
        """Rows that the policy was asked about, without those of the first check."""

    @property
    def is_function_of_frame(self) -> bool:
        """Whether the logits of a row were found to depend on its frame alone."""
        return self._sizes is not None and self._sizes.size > 0

    def logits(self, observations: Any) -> Any:
        """The policy's logits."""
        if self._sizes is None:
            return self._begin(observations)
        if not self._sizes.size:
            return self._policy.logits(observations)
        frames = [row.tobytes() for row in observations]
        # Comparing with the row's last frame is much cheaper than the hash by which any other frame is found.
        known = [
            logits if frame == last else self._kept.get(frame)
            for frame, (last, logits) in zip(frames, self._last, strict=True)
        ]
        missing: dict[bytes, int] = {}
        for row, logits in enumerate(known):
            if logits is None:
                missing.setdefault(frames[row], row)
        if missing:
            rows = list(missing.values())
            size = int(self._sizes[np.searchsorted(self._sizes, len(rows))])
            self.n_computed += size
            # All rows need no copy.
            some = (
                observations[rows + rows[:1] * (size - len(rows))]
                if len(rows) < len(observations)
                else observations
            )
            found = as_logits(self._policy.logits(some))
            computed = {frame: found[place] for place, frame in enumerate(missing)}
            if len(self._kept) + len(computed) > self._most_frames:
                self._kept.clear()
            self._kept |= computed
            known = [
                computed[frame] if logits is None else logits
                for frame, logits in zip(frames, known, strict=True)
            ]
        self._last = list(zip(frames, known, strict=True))
        return np.array(known)

    def _begin(self, observations: Any) -> Any:
        """The logits of the first batch, which tells what may be kept."""
        raw = self._policy.logits(observations)
        self._last = [(b"", None)] * len(observations)
        self._sizes = np.zeros(0, dtype=np.int64)
        if not isinstance(observations, np.ndarray) or observations.dtype.kind == "f":
            return raw  # a dict of arrays, or real numbers
        logits = as_logits(raw)
        if logits.ndim == 2 and len(logits) == len(observations):
            self._sizes = np.array(interchangeable_sizes(self._policy, observations, logits), dtype=np.int64)
            self._most_frames = max(1, self._most_bytes // max(1, observations[0].nbytes))
        return raw


def interchangeable_sizes(policy: Policy, observations: npt.NDArray[Any], logits: Logits) -> list[int]:
    """Numbers of rows whose logits are those of the whole batch in every bit; empty unless the whole batch is one.

    The rows are asked for in the opposite order, so they have other places and other companions too.
    """
    n = len(observations)

    def is_same(size: int) -> bool:
        turned = observations[n - size :][::-1].copy()
        return np.array_equal(as_logits(policy.logits(turned)), logits[n - size :][::-1])

    if not is_same(n):
        return []
    return [*(size for size in range(1, min(n - 1, _MOST_ROWS) + 1) if is_same(size)), n]
