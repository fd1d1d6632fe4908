"""The versioned table of facts about well-known dependencies, each with the text it was read from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class EnvironmentFact:
    """How a constructor of environments takes its levels."""

    name: str
    default_levels: int | None
    source: str
    keywords_in: str | None = None
    """The argument that holds the environment's keywords as a mapping, where they are not the call's own."""
    keywords_position: int | None = None
    factory: str | None = None
    """The argument that may be a function which makes the environment."""
    factory_position: int | None = None


@dataclass(frozen=True)
class ActorFact:
    """How a function of a dependency chooses the action: by one rule, or by a flag."""

    name: str
    source: str
    method: str = ""
    rule: str | None = None
    flag: str | None = None
    flag_position: int | None = None
    default: bool | None = None
    true: str | None = None
    false: str | None = None
    flag_at: str = "call"
    """Where the flag is given: at the acting call, or at the constructor of the object."""


@dataclass(frozen=True)
class LoopFact(ActorFact):
    """A function of a dependency that plays an environment itself."""

    environment: str = ""
    kind: str = ""
    position: int | None = None
    actor: str | None = None
    """The argument that acts; without it, or where it is not known, the repository's imports are asked."""
    actor_position: int | None = None
    environment_at: str = "call"
    """Where the environment is given: at the call itself, or at the constructor of the agent."""
    actor_method: str | None = None
    """The method of the actor whose fact tells the rule."""


@cache
def table(name: str) -> dict[str, Any]:
    """A table of `audit/data`."""
    text = resources.files("gapfloor.audit").joinpath(f"data/{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def words(name: str) -> frozenset[str]:
    """A list of names that the scanner knows, e.g. methods that change an object's place and not what it is."""
    return frozenset(table("functions")["words"][name])


@cache
def is_deterministic_function(name: str) -> bool:
    """Whether a library function or layer computes the same value every time.

    >>> is_deterministic_function("torch.tanh"), is_deterministic_function("torch.nn.Dropout")
    (True, False)
    """
    known = table("functions")
    if name in words("pure_builtins"):
        return True
    if noise_kind(name) is not None or name.startswith(tuple(known["not_numerical"])):
        return False
    last = name.rsplit(".", 1)[-1]
    rows = [row for row in known["deterministic"] if f"{name}.".startswith(row["prefix"])]
    return bool(rows) and not any(last in row.get("except", ()) for row in rows)


@cache
def noise_kind(name: str) -> str | None:
    """Which numbers a library function draws (uniform, normal, gumbel, other), or None.

    >>> noise_kind("numpy.random.rand"), noise_kind("torch.tanh")
    ('uniform', None)
    """
    known = table("functions")
    module, _, last = name.rpartition(".")
    starts = tuple(f"{one}{mark}" for one in known["random_modules"] for mark in (".", "("))
    in_random = module in known["random_modules"] or module.startswith(starts)
    for row in known["draws"]:
        if last in row["names"] and (in_random or module in ("torch", "tensorflow", "jax.random")):
            return str(row["kind"])
    return None


def is_noise_layer(name: str) -> bool:
    """Whether a layer draws in training mode."""
    return name.rsplit(".", 1)[-1] in table("functions")["noise_layers"]


@cache
def environment_facts() -> tuple[EnvironmentFact, ...]:
    """Constructors of environments."""
    return tuple(EnvironmentFact(**row) for row in table("facts")["environments"])


@cache
def actor_facts() -> tuple[ActorFact, ...]:
    """Objects that choose actions."""
    found: list[ActorFact] = []
    for row in table("facts")["actors"]:
        rest = {key: value for key, value in row.items() if key != "names"}
        found.extend(ActorFact(name=name, **rest) for name in row["names"])
    return tuple(found)


@cache
def flag_facts() -> tuple[ActorFact, ...]:
    """Flags whose name says how any object acts."""
    return tuple(ActorFact(name="", **row) for row in table("facts")["flags"])


@cache
def loop_facts() -> tuple[LoopFact, ...]:
    """Functions that play an environment."""
    return tuple(LoopFact(**row) for row in table("facts")["loops"])


def find_environment(name: str) -> EnvironmentFact | None:
    """The fact about the constructor `name`, if any."""
    return next((fact for fact in environment_facts() if fact.name == name), None)


def find_actor(name: str, method: str) -> ActorFact | None:
    """The fact about `method` of an object made by `name`, which may be deeper in the same package."""
    fitting = [
        fact
        for fact in actor_facts()
        if fact.method == method
        and (fact.name == name or name.startswith((fact.name + ".", fact.name + "().")))
    ]
    return max(fitting, key=lambda fact: len(fact.name), default=None)


def find_actor_by_call(text: str) -> ActorFact | None:
    """The fact about what a method gives back, e.g. `get_inference_policy`, where its object is not known."""
    method = text.removesuffix("()").rsplit(".", 1)[-1]
    found = [
        fact for fact in actor_facts() if fact.name.endswith(f"().{method}") and fact.method == "__call__"
    ]
    return found[0] if len({fact.rule for fact in found}) == 1 else None


def find_loops(name: str) -> list[LoopFact]:
    """The facts about the function `name`; a shorter import path of the same package counts."""
    found = [fact for fact in loop_facts() if fact.name == name]
    if found:
        return found
    head, _, tail = name.rpartition(".")
    if tail == "learn":
        agents = [fact for fact in loop_facts() if fact.environment_at == "constructor"]
        return [fact for fact in agents if name.startswith(fact.name.rpartition(".")[0] + ".")][:1]
    if not head or "()" in name:
        return []  # a method of an object, whatever it is called
    package = head.split(".")[0] + "."
    return [fact for fact in loop_facts() if fact.name.startswith(package) and fact.name.endswith("." + tail)]
