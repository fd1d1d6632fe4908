"""What was between the environment and the network during training, applied again before a loaded policy.

The order is that of the environment: one entry of a dict is chosen, then normalised or stacked. The shape of the
statistics tells whether normalisation came before or after stacking. The statistics of a VecNormalize
(`vecnormalize=FILE`) come from its own .pkl, whose numbers are read without running it, or from a .npz or .json file.

There are three common ways of stacking frames, and the network sees something different in each. `framestack=4` is
Stable-Baselines3's VecFrameStack: frames are joined along the channels (the last axis of vectors), with zeros before an
episode's first frame. `repeatstack=4` joins them in the same way, but the first frame fills the stack. `gymstack=4` is
Gymnasium's FrameStackObservation, as in CleanRL's Atari scripts: frames are stacked along a new first axis, and the
first frame fills the stack. A policy with a stack is a policy with state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.input_files import read_policy_file
from gapfloor.npy_bytes import read_npy
from gapfloor.policies.formats.archive import DamagedArchiveError, read_archive
from gapfloor.policies.formats.content_hash import extend_hash, hash_arrays
from gapfloor.policies.formats.plain_pickle import array_of, read_plainly
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.notes import note_once
from gapfloor.policies.policy import Policy, StatefulPolicy, copy_description

Frames = npt.NDArray[Any]
First = npt.NDArray[np.bool_]

Floats = npt.NDArray[np.float64]

#: Each way of stacking, as the option is called, and its name in content hashes.
STACKS = {"framestack": "JoinedFrames", "gymstack": "SeparateFrames", "repeatstack": "RepeatedFrames"}


@dataclass(frozen=True)
class ObservationStatistics:
    """Mean and variance of observations; the key is `""` if the observations are one array."""

    mean: Mapping[str, Floats]
    variance: Mapping[str, Floats]
    epsilon: float
    clip: float

    def fit(self, observations: Any) -> bool:
        """Whether the observations have the shapes that the statistics were computed for."""
        arrays = _by_name(observations)
        return all(k in arrays and arrays[k].shape[1:] == mean.shape for k, mean in self.mean.items())

    def normalise(self, observations: Any) -> Any:
        """Observations as VecNormalize gives them to the network, as float32; other keys stay as they are."""
        arrays = _by_name(observations)
        if not self.fit(observations):
            wanted = ", ".join(f"{key} {mean.shape}".strip() for key, mean in self.mean.items())
            seen = ", ".join(f"{key} {array.shape[1:]}".strip() for key, array in arrays.items())
            raise PolicyError(
                f"The statistics are those of observations {wanted}, not {seen}: give the file that was saved with "
                "this policy."
            )
        done = dict(arrays)
        for key, mean in self.mean.items():
            # In double precision and in this order, as in the library: the last bits are part of the policy.
            scaled = (arrays[key] - mean) / np.sqrt(self.variance[key] + self.epsilon)
            done[key] = np.clip(scaled, -self.clip, self.clip).astype(np.float32)
        return done if isinstance(observations, Mapping) else done[""]

    @property
    def fingerprint(self) -> str:
        """The hash of all numbers."""
        arrays = {f"mean/{k}": v for k, v in self.mean.items()}
        arrays |= {f"var/{k}": v for k, v in self.variance.items()}
        return hash_arrays(arrays, {"epsilon": self.epsilon, "clip": self.clip})


def _by_name(observations: Any) -> Mapping[str, Any]:
    return observations if isinstance(observations, Mapping) else {"": observations}


def read_statistics(path: Path) -> ObservationStatistics:
    """Statistics from a saved VecNormalize, or from .npz or .json."""
    content = read_policy_file(path)
    try:
        if path.suffix == ".json":
            return _from_numbers(json.loads(content))
        if path.suffix == ".npz":
            entries = read_archive(content, name=str(path)).items()
            return _from_numbers(
                {name.removesuffix(".npy"): read_npy(each) for name, each in entries if name.endswith(".npy")}
            )
        saved = read_plainly(content).state
        if not saved["norm_obs"]:
            raise PolicyError(f"{path} did not normalise observations: leave vecnormalize= out.")
        return _from_fields(saved, lambda noted: noted.state, array_of)
    except PolicyError:
        raise
    except (Exception, MemoryError) as error:  # numpy and json raise many kinds for damaged files
        is_zip = isinstance(error, DamagedArchiveError)
        why = "it is not a .npz archive, or it is damaged" if is_zip else type(error).__name__
        raise PolicyError(
            f"{path} does not hold statistics ({why}: {str(error)[:200]}): it needs mean, var, epsilon and clip."
        ) from None


def statistics_of(normalised: Any) -> ObservationStatistics | None:
    """The statistics of a VecNormalize, or None if it does not normalise observations."""
    return _from_fields(vars(normalised), vars, np.asarray) if normalised.norm_obs else None


def _from_fields(
    saved: Mapping[str, Any], fields_of: Callable[[Any], Mapping[str, Any]], number: Callable[[Any], Any]
) -> ObservationStatistics:
    """The statistics of a VecNormalize's fields; `fields_of` gives those of its parts, `number` an array of a field."""
    moments = saved["obs_rms"] if isinstance(saved["obs_rms"], dict) else {"": saved["obs_rms"]}
    numbers = {
        f"{name}/{key}".rstrip("/"): number(fields_of(each)[name])
        for key, each in moments.items()
        for name in ("mean", "var")
    }
    return _from_numbers({**numbers, "epsilon": number(saved["epsilon"]), "clip": number(saved["clip_obs"])})


def _from_numbers(numbers: Mapping[str, Any]) -> ObservationStatistics:
    """The statistics of arrays called mean and var, or mean/KEY and var/KEY for each entry of a dict."""
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}
    keys = [name.partition("/")[2] for name in arrays if name.partition("/")[0] == "mean"]
    if not keys:
        raise KeyError("mean")
    mean, variance = (
        {key: arrays[f"{name}/{key}" if key else name] for key in keys} for name in ("mean", "var")
    )
    for key in keys:
        if mean[key].shape != variance[key].shape:
            raise ValueError("mean and var differ in shape")
        if not (np.isfinite(mean[key]).all() and np.isfinite(variance[key]).all()):
            raise ValueError("mean and var are not all finite")
    return ObservationStatistics(mean, variance, float(arrays["epsilon"]), float(arrays["clip"]))


@dataclass(frozen=True)
class FrameStack:
    """How the last `n` frames of each row become one observation."""

    way: str
    """One of `STACKS`."""
    n: int

    def push(self, stack: Any, observations: Any, first: First) -> Any:
        """The stacked observations after one more step; `stack` is what the previous step returned, or None."""
        if isinstance(observations, Mapping):
            return {key: self.push(stack and stack[key], each, first) for key, each in observations.items()}
        if observations.ndim == 1:  # numbers and texts, which neither library stacks
            return observations
        frames, axis = observations, 1
        if self.way == "gymstack":
            frames = observations[:, None]
        elif (
            observations.ndim != 4 or observations.dtype != np.uint8 or np.argmin(observations.shape[1:]) != 0
        ):
            # VecFrameStack's own rule: the channels are the shortest of an image's three axes.
            axis = observations.ndim - 1
        if stack is None:
            stack, first = np.concatenate([frames] * self.n, axis=axis), np.ones(len(frames), dtype=bool)
        older = np.delete(stack, np.s_[: frames.shape[axis]], axis=axis)
        older[first] = 0
        if self.way != "framestack":
            older[first] = np.concatenate([frames[first]] * (self.n - 1), axis=axis)
        return np.concatenate([older, frames], axis=axis)


@dataclass(frozen=True)
class Preparation:
    """What happens to observations before the policy sees them."""

    key: str | None = None
    statistics: ObservationStatistics | None = None
    stack: FrameStack | None = None

    def apply(self, observations: Any, frames: Any, first: First) -> tuple[Any, Any]:
        """The observations that the policy sees, and the stack of frames to keep."""
        if self.key is not None:
            if not isinstance(observations, Mapping) or self.key not in observations:
                seen = ", ".join(sorted(observations)) if isinstance(observations, Mapping) else "one array"
                raise PolicyError(
                    f"The observations have no entry '{self.key}': they are {seen}; name one of these with ,key=NAME."
                )
            observations = observations[self.key]
        statistics = self.statistics
        if statistics is not None and (self.stack is None or statistics.fit(observations)):
            observations, statistics = statistics.normalise(observations), None
        if self.stack is not None:
            observations = frames = self.stack.push(frames, observations, first)
        if statistics is not None:
            observations = statistics.normalise(observations)
        return observations, frames


class PreparedPolicy:
    """A policy without state, with a preparation that needs none."""

    def __init__(self, policy: Any, preparation: Preparation) -> None:
        self._policy, self._preparation = policy, preparation
        copy_description(policy, self)
        statistics, stack = preparation.statistics, preparation.stack
        self.fingerprint = extend_hash(
            policy.fingerprint,
            key=preparation.key,
            statistics=statistics.fingerprint if statistics else None,
            stack=[STACKS[stack.way], stack.n] if stack else None,
        )

    def logits(self, observations: Any) -> Any:
        """Logits of the prepared observations."""
        return self._policy.logits(self._prepared(observations))

    def exported(self, observations: Any) -> Any:
        """The same with the policy as an ONNX graph, where it can be one."""
        if not hasattr(self._policy, "exported"):
            return self
        return type(self)(self._policy.exported(self._prepared(observations)), self._preparation)

    def _prepared(self, observations: Any) -> Any:
        # Without kept frames, nobody asks which rows start an episode.
        return self._preparation.apply(observations, None, np.zeros(0, dtype=bool))[0]


class PreparedStatefulPolicy(PreparedPolicy):
    """A policy with state: a stack of frames, the state of the policy itself, or both."""

    def initial_state(self, n: int) -> Any:
        """No frames yet, and the policy's own state."""
        own = self._policy.initial_state(n) if isinstance(self._policy, StatefulPolicy) else None
        return None, own

    def logits(self, observations: Any, state: Any, first: First) -> Any:  # type: ignore[override]
        """Logits of the prepared observations, and the next state."""
        frames, own = state
        prepared, frames = self._preparation.apply(observations, frames, np.asarray(first, dtype=bool))
        if own is None:
            return self._policy.logits(prepared), (frames, None)
        logits, own = self._policy.logits(prepared, own, first)
        return logits, (frames, own)


def prepare(policy: Any, spec: PolicySpec) -> Policy | StatefulPolicy:
    """The policy with the preparation that the options name; itself if they name none."""
    statistics = spec.options.get("vecnormalize")
    if statistics is None:
        _suspect_statistics(spec)
    stacks = [FrameStack(way, n) for way in STACKS if (n := spec.whole_number(way, least=2))]
    if len(stacks) > 1:
        raise UsageError(
            f"{stacks[0].way} and {stacks[1].way} are both given: use the one that the policy was trained with."
        )
    preparation = Preparation(
        key=spec.options.get("key"),
        statistics=read_statistics(Path(statistics)) if statistics else None,
        stack=stacks[0] if stacks else None,
    )
    return with_preparation(policy, preparation)


def _suspect_statistics(spec: PolicySpec) -> None:
    """Say once that statistics lie next to a model although the line does not name them."""
    folder = spec.path.parent
    for found in (*sorted(folder.glob("*.pkl")), folder / spec.path.stem / "vecnormalize.pkl"):
        if "normalize" in found.name.lower() and found.is_file():
            note_once(
                f"{found} lies next to {spec.path}, but the line does not name it: if the policy was trained with "
                f"VecNormalize, add ,vecnormalize={found}, because without it the policy is another one."
            )
            return


def with_preparation(policy: Any, preparation: Preparation) -> Policy | StatefulPolicy:
    """The policy with a preparation; itself if the preparation is empty."""
    if preparation == Preparation():
        unprepared: Policy | StatefulPolicy = policy
        return unprepared
    if preparation.stack is not None or isinstance(policy, StatefulPolicy):
        return PreparedStatefulPolicy(policy, preparation)
    return PreparedPolicy(policy, preparation)
