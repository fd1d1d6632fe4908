"""Classes of the repository: bases, methods, and what kind of thing their objects are."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Literal

from gapfloor.audit.interpreter.facts import words
from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, last_name, own_nodes

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

_ENVIRONMENT_BASE = re.compile(r"(env|environment|wrapper|vecenv|envwrapper|task)$", re.IGNORECASE)
DISTRIBUTION = re.compile(
    r"categorical|normal|gaussian|distribution|bernoulli|multinomial|beta$|^pd|_pd|pd_|^pi$|^dist|_dist|"
    r"^probs?$|squashed|boltzmann",
    re.IGNORECASE,
)
_OTHER_STEPPER = re.compile(r"agent|actor|polic|learner|tracker|accumulator|optim|sched", re.IGNORECASE)
_SPACES = words("spaces")
_TRANSITIONS = words("transitions")
Kind = Literal["environment", "network", "distribution", "set by name"]
_NETWORK = frozenset({"Module", "Model", "Layer", "Sequential", "RNNCell"})


class Classes:
    """Answers questions about classes for one evaluator, and remembers the answers."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._mro: dict[int, list[ClassInfo | str]] = {}
        self._kinds: dict[tuple[int, str], bool] = {}

    def mro(self, info: ClassInfo) -> list[ClassInfo | str]:
        """The class and its bases, depth first; external ones by name."""
        if id(info) not in self._mro:
            self._mro[id(info)] = [info]
            found: list[ClassInfo | str] = [info]
            for base in info.node.bases:
                resolved = self._evaluator.class_of(base, info.module)
                for item in self.mro(resolved) if isinstance(resolved, ClassInfo) else [resolved]:
                    if item not in found:
                        found.append(item)
            self._mro[id(info)] = found
        return self._mro[id(info)]

    def own(self, info: ClassInfo) -> list[ClassInfo]:
        """The class and its bases in the repository."""
        return [item for item in self.mro(info) if isinstance(item, ClassInfo)]

    def external_bases(self, info: ClassInfo) -> list[str]:
        """The names of bases outside the repository."""
        return [item for item in self.mro(info) if isinstance(item, str)]

    def method(self, info: ClassInfo, name: str, *, after: ClassInfo | None = None) -> FunctionInfo | None:
        """The method `name` of the class or its bases in the repository (beyond `after`, for `super()`)."""
        is_past = after is None
        for item in self.own(info):
            if is_past and name in item.methods:
                return item.methods[name]
            is_past = is_past or item is after
        return None

    def is_a(self, info: ClassInfo, kind: Kind) -> bool:
        """Whether objects of the class are environments (or wrap them), networks or a library's distributions.

        Attributes of an object that is `set by name` come from names at run time, so that a setting may be one of them.
        """
        key = (id(info), kind)
        if key not in self._kinds:
            self._kinds[key] = False
            self._kinds[key] = self._decide(info, kind)
        return self._kinds[key]

    def _decide(self, info: ClassInfo, kind: Kind) -> bool:
        bases = [base.rsplit(".", 1)[-1] for base in self.external_bases(info)]
        own = self.own(info)
        if kind == "network":
            return any(base in _NETWORK for base in bases)
        if kind == "distribution":
            return any(DISTRIBUTION.search(base) for base in bases)
        if kind == "set by name":
            nodes = [
                node for item in own for method in item.methods.values() for node in own_nodes(method.node)
            ]
            return any(
                (isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "__setattr__"))
                or (isinstance(node, ast.Attribute) and node.attr == "__dict__")
                for node in nodes
            )
        if any(base in _NETWORK for base in bases):
            return False
        if any(_ENVIRONMENT_BASE.search(base) for base in bases):
            return True
        names = {name for item in own for name in item.methods}
        is_named = any(_ENVIRONMENT_BASE.search(item.name) for item in own)
        # An environment may be reset to a level only; other objects have resets of their own (of noise, of weights).
        resets = {name for name in names if name == "reset" or (is_named and name.startswith("reset_"))}
        steps = [item.methods[name] for item in own for name in ("step", "step_wait") if name in item.methods]
        if is_named or not resets or any(_OTHER_STEPPER.search(item.name) for item in own):
            return is_named and bool(resets and steps)
        # Agents and trackers have `reset` and `step` too: an environment has spaces, or its step gives a transition.
        return any(map(_gives_transition, steps)) or (bool(steps) and _has_spaces(own))


def _gives_transition(step: FunctionInfo) -> bool:
    """Whether a step gives back what an environment gives: observation, reward and end, or a library's time step."""
    given = [node.value for node in own_nodes(step.node) if isinstance(node, ast.Return)]
    return any(
        (isinstance(one, ast.Tuple) and len(one.elts) >= 3) or (one and last_name(one) in _TRANSITIONS)
        for one in given
    )


def _has_spaces(own: list[ClassInfo]) -> bool:
    """Whether a class says which actions or observations there are."""
    return any(
        getattr(node, "attr", getattr(node, "name", getattr(node, "id", ""))) in _SPACES
        for item in own
        for scope in (item.node, *(method.node for method in item.methods.values()))
        for node in own_nodes(scope)
    )
