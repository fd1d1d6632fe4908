"""Observation normalisation that was part of training (VecNormalize): `vecnormalize=FILE`.

A policy that was trained on normalised observations is another policy without the normalisation. The mean and
variance come from VecNormalize's own .pkl, whose numbers are read without running it, or from a .npz or .json file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError
from gapfloor.input_files import read_policy_file
from gapfloor.npy_bytes import read_npy
from gapfloor.policies.formats.archive import DamagedArchiveError, read_archive
from gapfloor.policies.formats.content_hash import hash_arrays
from gapfloor.policies.formats.plain_pickle import array_of, read_plainly

Floats = npt.NDArray[np.float64]


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
            seen = {key: array.shape[1:] for key, array in arrays.items()}
            wanted = {key: mean.shape for key, mean in self.mean.items()}
            raise PolicyError(
                f"The statistics are those of observations {_shapes_in_words(wanted)}, not {_shapes_in_words(seen)}: "
                "give the file that was saved with this policy."
            )
        done = {k: self._normalise(k, v) if k in self.mean else v for k, v in arrays.items()}
        return done if isinstance(observations, Mapping) else done[""]

    def _normalise(self, key: str, array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        # In double precision and in this order, as in the library: the last bits are part of the policy.
        scaled = (array - self.mean[key]) / np.sqrt(self.variance[key] + self.epsilon)
        normalised: npt.NDArray[np.float32] = np.clip(scaled, -self.clip, self.clip).astype(np.float32)
        return normalised

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
        if path.suffix == ".npz":
            return _from_numbers(_read_npz(content, path))
        return _from_numbers(json.loads(content) if path.suffix == ".json" else _read_pickle(content, path))
    except PolicyError:
        raise
    except (Exception, MemoryError) as error:  # numpy and json raise many kinds for damaged files
        raise PolicyError(
            f"{path} does not hold statistics ({type(error).__name__}: {str(error)[:200]}): it needs mean, var, "
            "epsilon and clip."
        ) from None


def _read_npz(content: bytes, path: Path) -> dict[str, Any]:
    try:
        entries = read_archive(content, name=str(path))
    except DamagedArchiveError as error:
        raise ValueError(f"it is not a .npz archive, or it is damaged: {error}") from None
    return {
        name.removesuffix(".npy"): read_npy(each) for name, each in entries.items() if name.endswith(".npy")
    }


def _read_pickle(content: bytes, path: Path) -> dict[str, Any]:
    saved = read_plainly(content).state
    if not saved["norm_obs"]:
        raise PolicyError(f"{path} did not normalise observations: leave vecnormalize= out.")
    moments = saved["obs_rms"] if isinstance(saved["obs_rms"], dict) else {"": saved["obs_rms"]}
    numbers = {
        f"{name}/{key}".rstrip("/"): array_of(each.state[name])
        for key, each in moments.items()
        for name in ("mean", "var")
    }
    return numbers | {"epsilon": array_of(saved["epsilon"]), "clip": array_of(saved["clip_obs"])}


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


def statistics_of(normalised: Any) -> ObservationStatistics | None:
    """The statistics of a VecNormalize, or None if it does not normalise observations."""
    if not normalised.norm_obs:
        return None
    moments = normalised.obs_rms if isinstance(normalised.obs_rms, dict) else {"": normalised.obs_rms}
    return ObservationStatistics(
        mean={key: np.asarray(each.mean, dtype=np.float64) for key, each in moments.items()},
        variance={key: np.asarray(each.var, dtype=np.float64) for key, each in moments.items()},
        epsilon=float(normalised.epsilon),
        clip=float(normalised.clip_obs),
    )


def _shapes_in_words(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{key} {shape}".strip() for key, shape in shapes.items())
