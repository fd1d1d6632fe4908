"""What a rule is: how one action is chosen from a policy's distribution, and how a rule's name is read.

A policy gives logits; a rule turns them into one action, with exactly one uniform number per step, taken from the
episode's own stream. Where actions are rows of numbers, a policy gives a distribution and each dimension has a number.
The rule decides which policy is measured (Section "Evaluation protocol"), so it is a named value that every record
carries, never a default and never a boolean.

The rules are the subclasses of `Rule` in `gapfloor.rules.standard`.
"""

from __future__ import annotations

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import Partition
from gapfloor.actions.spaces import ActionSpace, Masks
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

    def choose_row(
        self, distribution: ActionDistribution, uniforms: Floats, space: ActionSpace, legal: Legal = None
    ) -> Rows:
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


@functools.cache
def _rules_by_name() -> dict[str, type[Rule]]:
    standard = importlib.import_module("gapfloor.rules.standard")
    found = [each for each in vars(standard).values() if isinstance(each, type) and issubclass(each, Rule)]
    return {kind.form.partition(":")[0]: kind for kind in found if kind is not Rule}


def rule_forms() -> tuple[str, ...]:
    """How the rules are written; a capital letter stands for a number."""
    return tuple(kind.form for kind in _rules_by_name().values())


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
    if name not in _rules_by_name():
        raise unknown_name("rule", text, rule_forms())
    return _rules_by_name()[name]


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
