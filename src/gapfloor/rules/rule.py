"""The rules: how one action is chosen from a policy's distribution, and how a rule's name is read.

A policy gives logits; a rule turns them into one action, with exactly one uniform number per step, taken from the
episode's own stream. Where actions are rows of numbers, a policy gives a distribution and each dimension has a number.
The rule decides which policy is measured (Section "Evaluation protocol"), so it is a named value that every record
carries, never a default and never a boolean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import Partition, merged_argmax
from gapfloor.actions.spaces import Box, Discrete, Masks
from gapfloor.errors import UsageError, refuse_repeats, unknown_name

if TYPE_CHECKING:  # scipy is imported only where such a distribution is played
    from gapfloor.actions.distributions import ActionDistribution

Floats = npt.NDArray[np.float64]
Actions = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]
Logits = npt.NDArray[np.floating]  # type: ignore[type-arg]
#: Which actions may be taken, one row per slot; None where all may.
Legal = Masks | None


class Rule(ABC):
    """How an action is chosen; `str(rule)` is the name that records carry."""

    form: ClassVar[str]
    """How the rule is written on the command line: `greedy`, or `epsilon:E` with a number for E."""
    is_deterministic: ClassVar[bool]
    """Whether an episode is a function of its level alone. No other place knows whether a rule draws."""
    needs_classes: ClassVar[bool] = False
    """Whether the rule reads the game's classes of equivalent actions."""
    reads_distribution: ClassVar[bool] = True
    """Whether it chooses from a policy's distribution; `own` leaves the choice to a policy that only acts."""
    draws_from_policy: ClassVar[bool] = False
    """Whether it draws from the policy's distribution, as it is or changed."""
    changes_distribution: ClassVar[bool] = False
    """Whether it draws from a distribution other than the policy's own."""

    def __str__(self) -> str:
        return self.form

    @classmethod
    def parse(cls, argument: str, *, text: str) -> Rule:
        """The rule with the argument after the colon; most rules take none."""
        if argument:
            raise unknown_name("rule", text, rule_forms())
        return cls()

    def bind(self, partition: Partition | None) -> Rule:
        """The rule for a game whose actions have these classes; most rules do not read them."""
        return self

    @property
    def classes(self) -> tuple[int, ...]:
        """Labels of the classes that the rule reads; empty for most rules."""
        return ()

    @abstractmethod
    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        """One action for each row of `logits`.

        `legal` marks the actions that may be taken; the logits of the others are minus infinity already.
        """

    def choose_row(self, distribution: ActionDistribution, uniforms: Floats, space: Box) -> Rows:
        """One action for each row of a distribution over a space whose actions are rows of numbers."""
        raise UsageError(
            f"The rule '{self}' needs numbered actions, but the actions are {space}: use another rule."
        )

    def changed_distribution(self, logits: Logits, legal: Legal = None) -> Floats | None:
        """What is drawn from, if it is neither the policy's own distribution nor one action; otherwise None."""
        return None

    def disagreements(self, logits: Logits, actions: Actions) -> npt.NDArray[np.bool_] | None:
        """Where `actions` belong to another class than plain argmax; None for rules without classes."""
        return None


def softmax(logits: Logits) -> Floats:
    """Probabilities of each row of logits, in float64.

    The bits of a row do not depend on the other rows: exponentials are elementwise and the sums run along one row.
    """
    wide = np.asarray(logits, dtype=np.float64)
    raised = np.exp(wide - wide.max(axis=1, keepdims=True))
    probabilities: Floats = raised / raised.sum(axis=1, keepdims=True)
    return probabilities


def draw_from(probabilities: Floats, uniforms: Floats) -> Actions:
    """One action per row by inverting the cumulative distribution at `uniforms`."""
    cumulative = np.cumsum(probabilities, axis=1)
    # The last cumulative value can fall short of 1 by rounding: the scaled threshold cannot pass it.
    thresholds = uniforms[:, None] * cumulative[:, -1:]
    actions: Actions = np.minimum((cumulative <= thresholds).sum(axis=1), probabilities.shape[1] - 1)
    return actions


@dataclass(frozen=True)
class Sampled(Rule):
    """Draw from the policy's own distribution: the policy that was trained."""

    form = "sampled"
    is_deterministic = False
    draws_from_policy = True

    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        return draw_from(softmax(logits), uniforms)

    def choose_row(self, distribution: ActionDistribution, uniforms: Floats, space: Box) -> Rows:
        return distribution.sample(uniforms, space)


@dataclass(frozen=True)
class Greedy(Rule):
    """The most probable action, ties to the lowest index (argmax)."""

    form = "greedy"
    is_deterministic = True

    def choose(self, logits: Logits, uniforms: Floats, legal: Legal = None) -> Actions:
        best: Actions = np.argmax(logits, axis=1)
        return best

    def choose_row(self, distribution: ActionDistribution, uniforms: Floats, space: Box) -> Rows:
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

    def choose_row(self, distribution: ActionDistribution, uniforms: Floats, space: Box) -> Rows:
        explores = uniforms[:, :1] < self.epsilon
        first = np.where(explores, np.clip(uniforms[:, :1] / self.epsilon, 0, 1 - 2.0**-53), 0.0)
        random = space.uniform(np.concatenate([first, uniforms[:, 1:]], axis=1))
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

    def choose_row(self, distribution: ActionDistribution, uniforms: Floats, space: Box) -> Rows:
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


#: The rules by the words before their colons.
RULES: Mapping[str, type[Rule]] = {
    kind.form.partition(":")[0]: kind for kind in (Sampled, Greedy, Merged, Epsilon, Temperature, Own)
}


def rule_forms() -> tuple[str, ...]:
    """How the rules are written; a capital letter stands for a number."""
    return tuple(kind.form for kind in RULES.values())


#: What other libraries call a rule -> what it is called here.
_OTHER_WORDS = {
    "argmax": "greedy", "deterministic": "greedy", "mode": "greedy", "stochastic": "sampled", "sample": "sampled",
    "softmax": "sampled",
}  # fmt: skip


def rule_kind(text: str) -> type[Rule]:
    """The class of the rule that a name means.

    >>> rule_kind("greedy").is_deterministic, rule_kind("epsilon:0.05").is_deterministic
    (True, False)
    """
    name = text.strip().partition(":")[0]
    if name in _OTHER_WORDS:
        ours = _OTHER_WORDS[name]
        raise UsageError(f"The rule is called '{ours}' here, not '{name}': write {ours}.")
    if name not in RULES:
        raise unknown_name("rule", text, rule_forms())
    return RULES[name]


def parse_rule(text: str) -> Rule:
    """Read a rule's name.

    >>> str(parse_rule("epsilon:0.05"))
    'epsilon:0.05'
    """
    return rule_kind(text).parse(text.strip().partition(":")[2], text=text)


def parse_rules(rules: str | Sequence[str]) -> tuple[Rule, ...]:
    """Read a list of rules, or its text with commas; a rule that is named twice is refused."""
    texts = rules.split(",") if isinstance(rules, str) else list(rules)
    parsed = tuple(parse_rule(text) for text in texts)
    refuse_repeats("rule", [str(rule) for rule in parsed])
    return parsed


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
