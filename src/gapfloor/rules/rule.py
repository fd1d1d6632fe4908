"""The action rules: sampled, greedy, epsilon:E, temperature:T and merged.

A policy gives logits; a rule turns them into one action, with exactly one uniform number a step, taken
from the episode's own stream. The rule decides which policy is measured (Section "Evaluation protocol"),
so it is a named value that every record carries, never a default and never a boolean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import Partition, merged_argmax
from gapfloor.errors import UsageError, unknown_name

Floats = npt.NDArray[np.float64]
Actions = npt.NDArray[np.int64]


def softmax(logits: npt.NDArray[np.floating]) -> Floats:  # type: ignore[type-arg]
    """Probabilities of each row of logits, in float64.

    Row by row the same bits whatever the other rows are: exponentials are elementwise and the sums run
    along one row.
    """
    wide = np.asarray(logits, dtype=np.float64)
    raised = np.exp(wide - wide.max(axis=1, keepdims=True))
    probabilities: Floats = raised / raised.sum(axis=1, keepdims=True)
    return probabilities


def draw_from(probabilities: Floats, uniforms: Floats) -> Actions:
    """One action a row by inverting the cumulative distribution at `uniforms`."""
    cumulative = np.cumsum(probabilities, axis=1)
    # The last cumulative value can fall short of 1 by rounding: the scaled threshold cannot pass it.
    thresholds = uniforms[:, None] * cumulative[:, -1:]
    actions: Actions = np.minimum((cumulative <= thresholds).sum(axis=1), probabilities.shape[1] - 1)
    return actions


class Rule(ABC):
    """How an action is chosen; `str(rule)` is the name that records carry."""

    is_deterministic: ClassVar[bool]

    @abstractmethod
    def choose(self, logits: npt.NDArray[np.floating], uniforms: Floats) -> Actions:  # type: ignore[type-arg]
        """One action for each row of `logits`."""

    def changed_distribution(self, logits: npt.NDArray[np.floating]) -> Floats | None:  # type: ignore[type-arg]
        """What is drawn from where it is neither the policy's own distribution nor one action; else None."""
        return None


@dataclass(frozen=True)
class Sampled(Rule):
    """Draw from the policy's own distribution: the policy that was trained."""

    is_deterministic = False

    def choose(self, logits: npt.NDArray[np.floating], uniforms: Floats) -> Actions:  # type: ignore[type-arg]
        return draw_from(softmax(logits), uniforms)

    def __str__(self) -> str:
        return "sampled"


@dataclass(frozen=True)
class Greedy(Rule):
    """The most probable action, ties to the lowest index (argmax)."""

    is_deterministic = True

    def choose(self, logits: npt.NDArray[np.floating], uniforms: Floats) -> Actions:  # type: ignore[type-arg]
        best: Actions = np.argmax(logits, axis=1)
        return best

    def __str__(self) -> str:
        return "greedy"


@dataclass(frozen=True)
class Epsilon(Rule):
    """A uniform action with probability `epsilon`, else the greedy one."""

    epsilon: float
    is_deterministic = False

    def choose(self, logits: npt.NDArray[np.floating], uniforms: Floats) -> Actions:  # type: ignore[type-arg]
        n_actions = logits.shape[1]
        # Below epsilon the number is itself uniform on [0, epsilon): one draw serves both decisions.
        random = np.minimum((uniforms / self.epsilon * n_actions).astype(np.int64), n_actions - 1)
        return np.where(uniforms < self.epsilon, random, np.argmax(logits, axis=1))

    def changed_distribution(self, logits: npt.NDArray[np.floating]) -> Floats:  # type: ignore[type-arg]
        probabilities = np.full(logits.shape, self.epsilon / logits.shape[1])
        probabilities[np.arange(len(logits)), np.argmax(logits, axis=1)] += 1 - self.epsilon
        return probabilities

    def __str__(self) -> str:
        return f"epsilon:{self.epsilon:g}"


@dataclass(frozen=True)
class Temperature(Rule):
    """Draw from the distribution with its logits divided by `temperature`."""

    temperature: float
    is_deterministic = False

    def choose(self, logits: npt.NDArray[np.floating], uniforms: Floats) -> Actions:  # type: ignore[type-arg]
        return draw_from(self.changed_distribution(logits), uniforms)

    def changed_distribution(self, logits: npt.NDArray[np.floating]) -> Floats:  # type: ignore[type-arg]
        return softmax(np.asarray(logits, dtype=np.float64) / self.temperature)

    def __str__(self) -> str:
        return f"temperature:{self.temperature:g}"


@dataclass(frozen=True)
class Merged(Rule):
    """The best class of equivalent actions, then its most probable action (merged argmax)."""

    partition: Partition
    is_deterministic = True

    def choose(self, logits: npt.NDArray[np.floating], uniforms: Floats) -> Actions:  # type: ignore[type-arg]
        return merged_argmax(softmax(logits), self.partition)

    def __str__(self) -> str:
        return "merged"


#: The names a rule can have on the command line; E and T stand for numbers.
RULE_NAMES = ("sampled", "greedy", "merged", "epsilon:E", "temperature:T")


def parse_rule(text: str, *, partition: Partition | None = None) -> Rule:
    """Read a rule's name. `merged` needs the game's partition of actions.

    >>> str(parse_rule("epsilon:0.05"))
    'epsilon:0.05'
    """
    name, _, argument = text.strip().partition(":")
    if name == "sampled" and not argument:
        return Sampled()
    if name == "greedy" and not argument:
        return Greedy()
    if name == "merged" and not argument:
        if partition is None:
            raise UsageError(
                "The rule 'merged' needs the game's action classes: run gapfloor calibrate first."
            )
        return Merged(partition)
    if name == "epsilon":
        return Epsilon(_number(text, argument, low=0.0, high=1.0))
    if name == "temperature":
        return Temperature(_number(text, argument, low=0.0, high=float("inf")))
    if name == "argmax":
        raise UsageError("The rule is called 'greedy' here, not 'argmax': write greedy.")
    raise unknown_name("rule", text, RULE_NAMES)


def parse_rules(text: str, *, partition: Partition | None = None) -> tuple[Rule, ...]:
    """Read a comma-separated list of rules; a rule named twice is refused."""
    rules = tuple(parse_rule(part, partition=partition) for part in text.split(","))
    names = [str(rule) for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The rule '{name}' is named twice in '{text}': name each rule once.")
    return rules


def rule_names(rules: Sequence[Rule]) -> tuple[str, ...]:
    """The recorded names of `rules`."""
    return tuple(str(rule) for rule in rules)


def _number(text: str, argument: str, *, low: float, high: float) -> float:
    try:
        value = float(argument)
    except ValueError:
        raise UsageError(f"The rule '{text}' needs a number after the colon, as epsilon:0.05.") from None
    if not low < value <= high or value == float("inf"):
        limit = f"at most {high:g}" if high != float("inf") else "finite"
        raise UsageError(f"The rule '{text}' is out of range: its number must be above {low:g} and {limit}.")
    return value
