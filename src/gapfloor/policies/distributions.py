"""What a policy over any action space returns: the parameters of its distribution.

A policy over discrete actions returns logits. Over other spaces it returns one of these: several categoricals, a
Gaussian (squashed or not), or a beta distribution. Rows are observations. A distribution can be sampled with uniform
numbers that the caller supplies, so that an episode depends on its own stream alone; `mode` is what the greedy rule
plays, and `mode_name` says what that is, because the mean of a squashed Gaussian is not its mode.

Play does not use these yet: rules choose among discrete actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import PolicyError

Floats = npt.NDArray[np.float64]


class ActionDistribution(ABC):
    """A distribution over actions for each row."""

    mode_name: str
    """What `mode` returns, for records: mode, or mean where the mode is not what the library plays."""

    @property
    @abstractmethod
    def n_uniforms(self) -> int:
        """How many uniform numbers one row's sample needs."""

    @abstractmethod
    def sample(self, uniforms: Floats) -> npt.NDArray[np.generic]:
        """One action per row from uniform numbers `[rows, n_uniforms]` in (0, 1)."""

    @abstractmethod
    def mode(self) -> npt.NDArray[np.generic]:
        """The action that the greedy rule plays, one per row."""

    @abstractmethod
    def entropy(self) -> Floats:
        """Entropy of each row in nats: of the probabilities, or differential where actions are continuous."""


@dataclass(frozen=True)
class Categoricals(ActionDistribution):
    """One categorical per dimension of a MultiDiscrete space (one for a Discrete space); -inf masks an action."""

    logits: tuple[Floats, ...]
    mode_name = "mode"

    def __post_init__(self) -> None:
        for number, each in enumerate(self.logits):
            _check_rows(each, f"the logits of dimension {number}", masks=True)
            if len(each) != len(self.logits[0]):
                raise PolicyError(
                    f"Dimension {number} has {len(each)} rows, but dimension 0 has {len(self.logits[0])}: return one "
                    "row per observation in each."
                )

    @property
    def n_uniforms(self) -> int:
        return len(self.logits)

    def sample(self, uniforms: Floats) -> npt.NDArray[np.generic]:
        columns = []
        for each, numbers in zip(self.logits, uniforms.T, strict=True):
            cumulative = np.cumsum(special.softmax(each, axis=1), axis=1)
            chosen = (cumulative <= numbers[:, None] * cumulative[:, -1:]).sum(axis=1)
            columns.append(np.minimum(chosen, each.shape[1] - 1))
        return np.stack(columns, axis=1)

    def mode(self) -> npt.NDArray[np.generic]:
        return np.stack([each.argmax(axis=1) for each in self.logits], axis=1)

    def entropy(self) -> Floats:
        total: Floats = sum(
            (special.entr(special.softmax(each, axis=1)).sum(axis=1) for each in self.logits),
            start=np.zeros(len(self.logits[0])),
        )
        return total


@dataclass(frozen=True)
class Gaussian(ActionDistribution):
    """Independent Gaussians, clipped to the bounds as PPO and A2C do."""

    mean: Floats
    deviation: Floats
    low: Floats
    high: Floats
    mode_name = "mode"

    def __post_init__(self) -> None:
        _check_rows(self.mean, "the mean")
        _check_positive(self.deviation, "the standard deviation", like=self.mean)

    @property
    def n_uniforms(self) -> int:
        return int(self.mean.shape[1])

    def sample(self, uniforms: Floats) -> npt.NDArray[np.generic]:
        clipped: Floats = np.clip(self.mean + self.deviation * special.ndtri(uniforms), self.low, self.high)
        return clipped

    def mode(self) -> npt.NDArray[np.generic]:
        return np.clip(self.mean, self.low, self.high)

    def entropy(self) -> Floats:
        """Differential entropy before clipping."""
        total: Floats = (0.5 * np.log(2 * np.pi * np.e) + np.log(self.deviation)).sum(axis=1)
        return total


@dataclass(frozen=True)
class SquashedGaussian(Gaussian):
    """Independent Gaussians through tanh, scaled to the bounds, as in SAC.

    The greedy action of libraries is tanh of the mean. That is the median, not the mode and not the mean of the
    distribution; it is named after the mean that it is computed from.
    """

    mode_name = "tanh of the mean"

    def sample(self, uniforms: Floats) -> npt.NDArray[np.generic]:
        return self._squash(self.mean + self.deviation * special.ndtri(uniforms))

    def mode(self) -> npt.NDArray[np.generic]:
        return self._squash(self.mean)

    def entropy(self) -> Floats:
        """Differential entropy after squashing, by Gauss-Hermite quadrature of the change of volume."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(64)  # type: ignore[no-untyped-call]
        before = self.mean[..., None] + self.deviation[..., None] * nodes
        # log(1 - tanh(u)^2), in the form that does not underflow.
        log_slope = 2 * (np.log(2) - before - np.logaddexp(0, -2 * before))
        expected = (log_slope * weights).sum(axis=-1) / weights.sum()
        total: Floats = super().entropy() + (expected + np.log((self.high - self.low) / 2)).sum(axis=1)
        return total

    def _squash(self, unbounded: Floats) -> Floats:
        scaled: Floats = self.low + (np.tanh(unbounded) + 1) / 2 * (self.high - self.low)
        return scaled


@dataclass(frozen=True)
class Beta(ActionDistribution):
    """Independent beta distributions, scaled to the bounds."""

    alpha: Floats
    beta: Floats
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        _check_positive(self.alpha, "alpha", like=self.alpha)
        _check_positive(self.beta, "beta", like=self.alpha)

    @property
    def mode_name(self) -> str:  # type: ignore[override]
        """The mode where there is one inside the bounds for every row; else the mean is played."""
        return "mode" if self._has_mode() else "mean"

    @property
    def n_uniforms(self) -> int:
        return int(self.alpha.shape[1])

    def sample(self, uniforms: Floats) -> npt.NDArray[np.generic]:
        return self._scaled(special.betaincinv(self.alpha, self.beta, uniforms))

    def mode(self) -> npt.NDArray[np.generic]:
        if self._has_mode():
            return self._scaled((self.alpha - 1) / (self.alpha + self.beta - 2))
        return self._scaled(self.alpha / (self.alpha + self.beta))

    def entropy(self) -> Floats:
        """Differential entropy."""
        a, b = self.alpha, self.beta
        # In closed form: scipy's entropy of a beta distribution works row by row in Python.
        unit = special.betaln(a, b) - (a - 1) * special.digamma(a) - (b - 1) * special.digamma(b)
        unit = unit + (a + b - 2) * special.digamma(a + b)
        total: Floats = (unit + np.log(self.high - self.low)).sum(axis=1)
        return total

    def _has_mode(self) -> bool:
        return bool(((self.alpha > 1) & (self.beta > 1)).all())

    def _scaled(self, unit: Floats) -> Floats:
        scaled: Floats = self.low + unit * (self.high - self.low)
        return scaled


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
