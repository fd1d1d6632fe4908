"""Observation normalisation that was part of training (VecNormalize): `vecnormalize=FILE`.

A policy that was trained behind a running mean and variance is another policy without them. Statistics come
from a .npz or .json file, which hold numbers only, or from VecNormalize's own .pkl, which is a pickle and needs
the user's word; this converts one to the other, once:

    python -m gapfloor.policies.formats.normalisation stats.pkl --out stats.npz --trust
"""

from __future__ import annotations

import argparse
import io
import json
import pickle
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import GapfloorError, PolicyError, UsageError
from gapfloor.policies.formats.content_hash import hash_arrays
from gapfloor.policies.formats.inference import missing_library
from gapfloor.policies.formats.spec import TRUST_MEANS, existing_file

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """Mean and variance of observations; `""` is the key of observations that are one array."""

    mean: Mapping[str, Floats]
    variance: Mapping[str, Floats]
    epsilon: float
    clip: float

    def fit(self, observations: Any) -> bool:
        """Whether the observations have the shapes that the statistics were taken of."""
        arrays = observations if isinstance(observations, Mapping) else {"": observations}
        return all(k in arrays and arrays[k].shape[1:] == mean.shape for k, mean in self.mean.items())

    def normalise(self, observations: Any) -> Any:
        """Observations as VecNormalize hands them to the network, float32; other keys stay as they are."""
        if not self.fit(observations):
            arrays = observations if isinstance(observations, Mapping) else {"": observations}
            seen = {key: array.shape[1:] for key, array in arrays.items()}
            wanted = {key: mean.shape for key, mean in self.mean.items()}
            raise PolicyError(f"The statistics are of observations {_words(wanted)}, not {_words(seen)}.")
        if not isinstance(observations, Mapping):
            return self._normalise("", observations)
        return {k: self._normalise(k, v) if k in self.mean else v for k, v in observations.items()}

    def _normalise(self, key: str, array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        # In double precision and in this order, as the library does: the last bits are part of the policy.
        scaled = (array - self.mean[key]) / np.sqrt(self.variance[key] + self.epsilon)
        normalised: npt.NDArray[np.float32] = np.clip(scaled, -self.clip, self.clip).astype(np.float32)
        return normalised

    @property
    def fingerprint(self) -> str:
        """The hash of all numbers."""
        arrays = {f"mean/{k}": v for k, v in self.mean.items()}
        arrays |= {f"var/{k}": v for k, v in self.variance.items()}
        return hash_arrays(arrays, {"epsilon": self.epsilon, "clip": self.clip})


def read_statistics(path: Path, *, is_trusted: bool) -> Statistics:
    """Statistics from .npz, .json, or (only with the user's word) a pickled VecNormalize."""
    existing_file(path)
    if path.suffix in (".npz", ".json"):
        try:
            return _from_numbers(_read_npz(path) if path.suffix == ".npz" else _read_json(path))
        except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise PolicyError(
                f"{path} does not hold statistics ({error}): it needs mean, var, epsilon and clip."
            ) from None
    if not is_trusted:
        raise PolicyError(
            f"{path} is a pickle: {TRUST_MEANS}; or convert it once to .npz (docs/policies.md)."
        )
    return _unpickle(path)


def write_statistics(statistics: Statistics, path: Path) -> None:
    """Statistics as a .npz file that is read without unpickling."""
    from gapfloor.records.atomic import write_bytes_atomically

    arrays: dict[str, Any] = {"epsilon": statistics.epsilon, "clip": statistics.clip}
    for key in statistics.mean:
        suffix = f"/{key}" if key else ""
        arrays[f"mean{suffix}"], arrays[f"var{suffix}"] = statistics.mean[key], statistics.variance[key]
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_bytes_atomically(path, buffer.getvalue())


def _read_npz(path: Path) -> dict[str, Any]:
    loaded = np.load(path, allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise ValueError("it is one array, not a .npz archive")
    with loaded as file:
        return {name: file[name] for name in file.files}


def _read_json(path: Path) -> dict[str, Any]:
    numbers = json.loads(path.read_text())
    if not isinstance(numbers, dict):
        raise ValueError("not an object")
    return numbers


def _from_numbers(numbers: Mapping[str, Any]) -> Statistics:
    keys = [name.partition("/")[2] for name in numbers if name.partition("/")[0] == "mean"]
    if not keys:
        raise KeyError("mean")
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}
    name = {key: f"/{key}" if key else "" for key in keys}
    statistics = Statistics(
        mean={key: arrays[f"mean{name[key]}"] for key in keys},
        variance={key: arrays[f"var{name[key]}"] for key in keys},
        epsilon=float(arrays["epsilon"]),
        clip=float(arrays["clip"]),
    )
    for key in keys:
        if statistics.mean[key].shape != statistics.variance[key].shape:
            raise ValueError("mean and var differ in shape")
    return statistics


def _unpickle(path: Path) -> Statistics:
    try:
        import stable_baselines3  # noqa: F401 (the pickle names its classes)
    except ImportError as error:
        raise missing_library(error) from None
    try:
        saved = pickle.loads(path.read_bytes())
        if not saved.norm_obs:
            raise PolicyError(f"{path} did not normalise observations: leave vecnormalize= out.")
        moments = saved.obs_rms if isinstance(saved.obs_rms, dict) else {"": saved.obs_rms}
        return Statistics(
            mean={key: np.asarray(each.mean, dtype=np.float64) for key, each in moments.items()},
            variance={key: np.asarray(each.var, dtype=np.float64) for key, each in moments.items()},
            epsilon=float(saved.epsilon),
            clip=float(saved.clip_obs),
        )
    except PolicyError:
        raise
    except Exception as error:
        raise PolicyError(f"{path} is not a saved VecNormalize: {type(error).__name__}: {error}") from None


def _words(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{key} {shape}".strip() for key, shape in shapes.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert a pickled VecNormalize to .npz, on the user's word."""
    parser = argparse.ArgumentParser(
        prog="python -m gapfloor.policies.formats.normalisation", description=main.__doc__
    )
    parser.add_argument("pickle", type=Path, help="what VecNormalize.save() wrote")
    parser.add_argument("--out", type=Path, required=True, help="the .npz file to write")
    parser.add_argument("--trust", action="store_true", help="unpickle it, which runs whatever code it holds")
    options = parser.parse_args(arguments)
    try:
        if options.out.suffix != ".npz":
            raise UsageError(f"{options.out} does not end in .npz: statistics are written as .npz.")
        if not options.trust:
            raise PolicyError(
                f"{options.pickle} is a pickle, and unpickling runs whatever code it holds: add --trust if it is yours."
            )
        write_statistics(read_statistics(options.pickle, is_trusted=True), options.out)
    except GapfloorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
