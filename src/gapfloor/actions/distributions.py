"""What a policy over any action space returns: the parameters of its distribution.

A policy over numbered actions returns logits. Over other spaces it returns one of these: several categoricals, a
Gaussian (squashed or not), or the action itself where it has no distribution. Rows are
observations. A distribution is sampled with uniform numbers that the caller supplies, so that an episode depends on its
own stream alone; `mode` is what the greedy rule plays, and `mode_name` says what that is, because the mean of a
squashed Gaussian is not its mode.
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

from gapfloor.actions.spaces import Actions, ActionSpace, Box, Masks, MultiDiscrete
from gapfloor.errors import PolicyError

Floats = npt.NDArray[np.float64]

#: Uniform numbers are kept this far from 0 and 1, where a quantile would be infinite.
_EDGE = 2.0**-54


class ActionDistribution(ABC):
    """A distribution over actions for each row."""

    mode_name: str
    """What `mode` returns, for records: mode, or what it is where that is not the mode."""
    entropy_field: str = "entropy_differential"
    """The field of a cell record that holds the mean entropy."""
    is_deterministic: bool = False
    """Whether there is nothing to draw from, so that every rule but epsilon plays the same action."""

    @property
    @abstractmethod
    def parameters(self) -> Floats:
        """All parameters, one row per observation."""

    @abstractmethod
    def rows(self, chosen: npt.NDArray[Any]) -> Self:
        """The distributions of some rows."""

    @abstractmethod
    def check(self, space: ActionSpace, *, name: str) -> None:
        """Refuse another space than the one that the parameters are for."""

    @abstractmethod
    def sample(self, uniforms: Floats, space: Any) -> Actions:
        """One action per row from uniform numbers `[rows, width]` in [0, 1)."""

    @abstractmethod
    def mode(self, space: Any) -> Actions:
        """The action that the greedy rule plays, one per row."""

    @abstractmethod
    def entropy(self, space: Any) -> Floats | None:
        """Entropy of each row in nats, differential where actions are continuous; None where there is none."""

    @abstractmethod
    def tempered(self, temperature: float) -> Self:
        """The distribution whose density is this one's to the power 1/temperature, scaled to be one again."""


@dataclass(frozen=True)
class Categoricals(ActionDistribution):
    """One categorical per dimension of a MultiDiscrete space; -inf masks an action."""

    logits: tuple[Floats, ...]
    mode_name = "mode"
    entropy_field = "entropy_joint"

    def __post_init__(self) -> None:
        object.__setattr__(self, "logits", tuple(as_floats(each) for each in self.logits))
        for number, each in enumerate(self.logits):
            _check_rows(each, f"the logits of dimension {number}", masks=True)
            if len(each) != len(self.logits[0]):
                raise PolicyError(
                    f"Dimension {number} has {len(each)} rows, but dimension 0 has {len(self.logits[0])}: return one "
                    "row per observation in each."
                )

    @property
    def parameters(self) -> Floats:
        return np.concatenate(self.logits, axis=1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each dimension."""
        return tuple(each.shape[1] for each in self.logits)

    def rows(self, chosen: npt.NDArray[Any]) -> Categoricals:
        return Categoricals(tuple(each[chosen] for each in self.logits))

    def check(self, space: ActionSpace, *, name: str) -> None:
        if not isinstance(space, MultiDiscrete) or space.sizes != self.sizes:
            raise _other_space(name, f"chooses in MultiDiscrete({', '.join(map(str, self.sizes))})", space)

    def masked(self, legal: Masks) -> Categoricals:
        """Without the actions that are not legal; the mask has a column for each value of each dimension."""
        masks = MultiDiscrete(self.sizes).split(legal)
        parts = zip(self.logits, masks, strict=True)
        return Categoricals(tuple(np.where(mask, each, -np.inf) for each, mask in parts))

    def sample(self, uniforms: Floats, space: Any) -> Actions:
        columns = []
        for each, numbers in zip(self.logits, uniforms.T, strict=True):
            cumulative = np.cumsum(special.softmax(each, axis=1), axis=1)
            chosen = (cumulative <= numbers[:, None] * cumulative[:, -1:]).sum(axis=1)
            columns.append(np.minimum(chosen, each.shape[1] - 1))
        return np.stack(columns, axis=1)

    def mode(self, space: Any) -> Actions:
        return np.stack([each.argmax(axis=1) for each in self.logits], axis=1)

    def entropy(self, space: Any) -> Floats:
        total: Floats = sum(
            (special.entr(special.softmax(each, axis=1)).sum(axis=1) for each in self.logits),
            start=np.zeros(len(self.logits[0])),
        )
        return total

    def tempered(self, temperature: float) -> Categoricals:
        return Categoricals(tuple(each / temperature for each in self.logits))


class _BoxDistribution(ActionDistribution):
    """What the distributions over a box share; their fields are arrays of the shape [rows, dimensions]."""

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
        return np.concatenate(self._arrays(), axis=1)

    def rows(self, chosen: npt.NDArray[Any]) -> Self:
        return type(self)(*(array[chosen] for array in self._arrays()))

    def check(self, space: ActionSpace, *, name: str) -> None:
        width = self._arrays()[0].shape[1]
        if not isinstance(space, Box) or space.width != width:
            raise _other_space(name, f"acts with {width} real number{'s' * (width > 1)}", space)


@dataclass(frozen=True)
class Gaussian(_BoxDistribution):
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
class Deterministic(_BoxDistribution):
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
    return _scaled((np.tanh(unbounded) + 1) / 2, space)


def _scaled(unit: Floats, space: Box) -> Floats:
    low, high = space.bounds
    scaled: Floats = low + unit * (high - low)
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
