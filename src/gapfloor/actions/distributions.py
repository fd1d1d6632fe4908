"""What a policy over any action space returns: the parameters of its distribution.

A policy over numbered actions returns logits, of all actions or of each dimension (`Categoricals`). Over a box it
returns a Gaussian (squashed or not), or the action itself where it has no distribution. Rows are observations. A
distribution is sampled with uniform numbers that the caller supplies, so that an episode depends on its own stream
alone; `mode` is what the greedy rule plays, and `mode_name` says what that is, because the mean of a squashed Gaussian
is not its mode.
"""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.actions.spaces import Actions, ActionSpace, Box, Discrete
from gapfloor.errors import PolicyError

Floats = npt.NDArray[np.float64]

#: Uniform numbers are kept this far from 0 and 1, where a quantile would be infinite.
_EDGE = 2.0**-54


class ActionDistribution(ABC):
    """A distribution over the actions of a box for each row; fields are arrays of the shape [rows, dimensions]."""

    mode_name: str
    """What `mode` returns, for records: mode, or what it is where that is not the mode."""
    is_deterministic: bool = False
    """Whether there is nothing to draw from, so that every rule but epsilon plays the same action."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, field.name, as_floats(getattr(self, field.name)))
        self._check_values()

    @abstractmethod
    def _check_values(self) -> None:
        """Refuse parameters from which nothing can be drawn."""

    def _arrays(self) -> list[Floats]:
        return [getattr(self, field.name) for field in dataclasses.fields(self)]  # type: ignore[arg-type]

    @property
    def parameters(self) -> Floats:
        """All parameters, one row per observation."""
        return np.concatenate(self._arrays(), axis=1)

    def rows(self, chosen: npt.NDArray[Any]) -> Self:
        """The distributions of some rows."""
        return type(self)(*(array[chosen] for array in self._arrays()))

    def check(self, space: ActionSpace, *, name: str) -> None:
        """Refuse another space than the one that the parameters are for."""
        width = self._arrays()[0].shape[1]
        if not isinstance(space, Box) or space.width != width:
            raise _other_space(name, f"acts with {width} real number{'s' * (width > 1)}", space)

    @abstractmethod
    def sample(self, uniforms: Floats, space: Box) -> Actions:
        """One action per row from uniform numbers `[rows, width]` in [0, 1)."""

    @abstractmethod
    def mode(self, space: Box) -> Actions:
        """The action that the greedy rule plays, one per row."""

    @abstractmethod
    def entropy(self, space: Box) -> Floats | None:
        """Differential entropy of each row in nats; None where there is none."""

    @abstractmethod
    def tempered(self, temperature: float) -> Self:
        """The distribution whose density is this one's to the power 1/temperature, scaled to be one again."""


@dataclass(frozen=True)
class Gaussian(ActionDistribution):
    """Independent Gaussians, clipped to the bounds as PPO and A2C do."""

    mean: Floats
    deviation: Floats
    mode_name = "mode"

    def _check_values(self) -> None:
        _check_rows(self.mean, "the mean")
        _check_positive(self.deviation, "the standard deviation", like=self.mean)

    def sample(self, uniforms: Floats, space: Box) -> Actions:
        return np.clip(self._draw(uniforms), *space.bounds)

    def mode(self, space: Box) -> Actions:
        return np.clip(self.mean, *space.bounds)

    def entropy(self, space: Box) -> Floats:
        """Differential entropy before clipping."""
        total: Floats = (0.5 * np.log(2 * np.pi * np.e) + np.log(self.deviation)).sum(axis=1)
        return total

    def tempered(self, temperature: float) -> Self:
        return type(self)(self.mean, self.deviation * np.sqrt(temperature))

    def _draw(self, uniforms: Floats) -> Floats:
        drawn: Floats = self.mean + self.deviation * special.ndtri(np.clip(uniforms, _EDGE, 1 - 2 * _EDGE))
        return drawn


@dataclass(frozen=True)
class SquashedGaussian(Gaussian):
    """Independent Gaussians through tanh, scaled to the bounds, as in SAC.

    The greedy action of libraries is tanh of the mean. That is the median, not the mode and not the mean of the
    distribution; it is named after the mean that it is computed from. A temperature applies before squashing.
    """

    mode_name = "tanh of the mean"

    def sample(self, uniforms: Floats, space: Box) -> Actions:
        return _squash(self._draw(uniforms), space)

    def mode(self, space: Box) -> Actions:
        return _squash(self.mean, space)

    def entropy(self, space: Box) -> Floats:
        """Differential entropy after squashing, by Gauss-Hermite quadrature of the change of volume."""
        nodes, weights = _quadrature()
        before = self.mean[..., None] + self.deviation[..., None] * nodes
        # log(1 - tanh(u)^2), in the form that does not underflow.
        log_slope = 2 * (np.log(2) - before - np.logaddexp(0, -2 * before))
        expected = (log_slope * weights).sum(axis=-1) / weights.sum()
        low, high = space.bounds
        total: Floats = super().entropy(space) + (expected + np.log((high - low) / 2)).sum(axis=1)
        return total


@dataclass(frozen=True)
class Deterministic(ActionDistribution):
    """The action itself, as TD3 and DDPG return it; there is nothing to draw from."""

    action: Floats
    mode_name = "the only action"
    is_deterministic = True

    def _check_values(self) -> None:
        _check_rows(self.action, "the action")

    def sample(self, uniforms: Floats, space: Box) -> Actions:
        return self.mode(space)

    def mode(self, space: Box) -> Actions:
        return np.clip(self.action, *space.bounds)

    def entropy(self, space: Box) -> None:
        return None

    def tempered(self, temperature: float) -> Deterministic:
        return self


@dataclass(frozen=True)
class Categoricals:
    """Logits of each dimension of an action that is several whole numbers; -inf masks a value."""

    logits: tuple[Floats, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "logits", tuple(as_floats(each) for each in self.logits))
        for number, each in enumerate(self.logits):
            _check_rows(each, f"the logits of dimension {number}", masks=True)
            if len(each) != len(self.logits[0]):
                raise PolicyError(
                    f"Dimension {number} has {len(each)} rows, but dimension 0 has {len(self.logits[0])}: return one "
                    "row per observation in each."
                )

    def joint(self, space: Discrete, *, name: str) -> Floats:
        """The logits of the numbered actions; refused where the dimensions are not those of the space."""
        sizes = tuple(each.shape[1] for each in self.logits)
        if len(sizes) > 1 and sizes != space.factors:
            raise _other_space(name, f"chooses in MultiDiscrete({', '.join(map(str, sizes))})", space)
        return space.joint(self.logits)


def as_floats(values: Any) -> Floats:
    """Numbers of a policy, e.g. a torch tensor on any device, as an array of doubles."""
    if hasattr(values, "detach"):
        values = values.detach().double().cpu().numpy()
    return np.asarray(values, dtype=np.float64)


@functools.cache  # finding the nodes costs more than using them
def _quadrature() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)  # type: ignore[no-untyped-call]
    return nodes, weights


def _squash(unbounded: Floats, space: Box) -> Floats:
    low, high = space.bounds
    scaled: Floats = low + (np.tanh(unbounded) + 1) / 2 * (high - low)
    return scaled


def _other_space(name: str, what: str, space: ActionSpace) -> PolicyError:
    return PolicyError(
        f"The policy {name} {what}, but the environment's actions are {space}: play it where it was trained."
    )


def _check_rows(values: Floats, what: str, *, masks: bool = False) -> None:
    if values.ndim != 2 or values.shape[1] == 0:
        raise PolicyError(
            f"A policy returned {what} in the shape {values.shape}: return one row per observation."
        )
    usable = np.isfinite(values) | (np.isneginf(values) if masks else False)
    if not usable.all() or (masks and not np.isfinite(values).any(axis=1).all()):
        raise PolicyError(
            f"A policy returned {what} with numbers that are not finite: nothing can be drawn from it."
        )


def _check_positive(values: Floats, what: str, *, like: Floats) -> None:
    _check_rows(values, what)
    if values.shape != like.shape or not (values > 0).all():
        raise PolicyError(
            f"A policy returned {what} in the shape {values.shape} with a least value of {values.min():g}: it must "
            f"have the shape {like.shape} and be above 0."
        )
