"""The rules that come with gapfloor: sampled, greedy, merged, epsilon:E, temperature:T and own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import Partition, merged_argmax
from gapfloor.actions.spaces import ActionSpace, Discrete
from gapfloor.errors import UsageError
from gapfloor.rules.rule import Actions, Floats, Legal, Logits, Rows, Rule, draw_from, softmax

if TYPE_CHECKING:
    from gapfloor.actions.distributions import ActionDistribution


@dataclass(frozen=True)
class Sampled(Rule):
    """Draw from the policy's own distribution: the policy that was trained."""

    form = "sampled"
    is_deterministic = False
    draws_from_policy = True

    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        return draw_from(softmax(logits), uniforms)

    def choose_row(
        self, distribution: ActionDistribution, uniforms: Floats, space: ActionSpace, legal: Legal = None
    ) -> Rows:
        return distribution.sample(uniforms, space)


@dataclass(frozen=True)
class Greedy(Rule):
    """The most probable action, ties to the lowest index (argmax)."""

    form = "greedy"
    is_deterministic = True

    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        best: Actions = np.argmax(logits, axis=1)
        return best

    def choose_row(
        self, distribution: ActionDistribution, uniforms: Floats, space: ActionSpace, legal: Legal = None
    ) -> Rows:
        return distribution.mode(space)


@dataclass(frozen=True)
class Merged(Rule):
    """The best class of equivalent actions, then its most probable action (merged argmax)."""

    partition: Partition | None = None
    """The game's classes; None until `bind` gives them."""
    form = "merged"
    is_deterministic = True
    needs_classes = True

    def bind(self, partition: Partition | None) -> Merged:
        return Merged(_known(partition))

    @property
    def classes(self) -> tuple[int, ...]:
        return _known(self.partition).labels

    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        return merged_argmax(softmax(logits), _known(self.partition))

    def disagreements(self, logits: Logits, actions: Actions) -> npt.NDArray[np.bool_]:
        labels = np.asarray(self.classes)
        differ: npt.NDArray[np.bool_] = labels[actions] != labels[np.argmax(logits, axis=1)]
        return differ


@dataclass(frozen=True)
class Epsilon(Rule):
    """A uniform action with probability `epsilon`, otherwise the greedy one; masked actions (-inf) are never taken."""

    epsilon: float
    form = "epsilon:E"
    is_deterministic = False
    changes_distribution = True

    @classmethod
    def parse(cls, argument: str, *, text: str) -> Epsilon:
        return cls(_number(text, argument, low=0.0, high=1.0))

    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        n_actions = logits.shape[1]
        legal = _legal(logits, legal)
        # Below epsilon the number is itself uniform on [0, epsilon): one draw serves both decisions.
        random = np.minimum((uniforms / self.epsilon * n_actions).astype(np.int64), n_actions - 1)
        if legal is not None:
            # The same number, spread over the legal actions only.
            random = Discrete(n_actions).uniform(np.clip(uniforms / self.epsilon, 0, 1 - 2.0**-53), legal)
        return np.where(uniforms < self.epsilon, random, np.argmax(logits, axis=1))

    def choose_row(
        self, distribution: ActionDistribution, uniforms: Floats, space: ActionSpace, legal: Legal = None
    ) -> Rows:
        explores = uniforms[:, :1] < self.epsilon
        first = np.where(explores, np.clip(uniforms[:, :1] / self.epsilon, 0, 1 - 2.0**-53), 0.0)
        random = space.uniform(np.concatenate([first, uniforms[:, 1:]], axis=1), legal)
        return np.where(explores, random, distribution.mode(space))

    def changed_distribution(self, logits: Logits, legal: Legal = None) -> Floats:
        probabilities = np.full(logits.shape, self.epsilon / logits.shape[1])
        legal = _legal(logits, legal)
        if legal is not None:
            probabilities = self.epsilon * legal / legal.sum(axis=1, keepdims=True)
        probabilities[np.arange(len(logits)), np.argmax(logits, axis=1)] += 1 - self.epsilon
        return probabilities

    def __str__(self) -> str:
        return f"epsilon:{exact_number(self.epsilon)}"


@dataclass(frozen=True)
class Temperature(Rule):
    """Draw from the distribution with its logits divided by `temperature`."""

    temperature: float
    form = "temperature:T"
    is_deterministic = False
    draws_from_policy = True
    changes_distribution = True

    @classmethod
    def parse(cls, argument: str, *, text: str) -> Temperature:
        # Below this, logits divided by the temperature overflow.
        return cls(_number(text, argument, low=1e-30, high=float("inf")))

    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        return draw_from(self.changed_distribution(logits), uniforms)

    def choose_row(
        self, distribution: ActionDistribution, uniforms: Floats, space: ActionSpace, legal: Legal = None
    ) -> Rows:
        return distribution.tempered(self.temperature).sample(uniforms, space)

    def changed_distribution(self, logits: Logits, legal: Legal = None) -> Floats:
        return softmax(np.asarray(logits, dtype=np.float64) / self.temperature)

    def __str__(self) -> str:
        return f"temperature:{exact_number(self.temperature)}"


@dataclass(frozen=True)
class Own(Rule):
    """As the policy acts: for a policy that returns actions and no distribution (`gapfloor.policies.acting`)."""

    form = "own"
    is_deterministic = False
    reads_distribution = False

    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        raise UsageError(
            "The rule 'own' is for policies that only act, and this one returns a distribution: use sampled or greedy."
        )


def _legal(logits: Logits, legal: Legal) -> Legal:
    """The actions that may be taken, None if all may: a logit of -inf is a mask too."""
    is_masked = np.isneginf(logits)
    if not is_masked.any():
        return legal
    return ~is_masked if legal is None else legal & ~is_masked


def exact_number(value: float) -> str:
    """The shortest text that gives back exactly this number: a label is part of a cell's key.

    >>> exact_number(0.5), exact_number(1.0), exact_number(0.12345678)
    ('0.5', '1', '0.12345678')
    """
    return repr(float(value)).removesuffix(".0")


def _known(partition: Partition | None) -> Partition:
    if partition is None:
        raise UsageError("The rule 'merged' needs the game's action classes: run gapfloor calibrate first.")
    return partition


def _number(text: str, argument: str, *, low: float, high: float) -> float:
    try:
        value = float(argument)
    except ValueError:
        example = "temperature:0.5" if text.startswith("temperature") else "epsilon:0.05"
        raise UsageError(f"The rule '{text}' needs a number after a colon, e.g. {example}.") from None
    if not low < value <= high or value == float("inf"):
        limit = f"at most {high:g}" if high != float("inf") else "finite"
        raise UsageError(f"The rule '{text}' is out of range: its number must be above {low:g} and {limit}.")
    return value
