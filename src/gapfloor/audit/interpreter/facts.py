"""The versioned table of facts about well-known dependencies, each with the text it was read from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from gapfloor.settings import shipped


@dataclass(frozen=True)
class Fact:
    """What is known about a function or object of a dependency; each kind of fact uses the fields that it needs."""

    source: str
    name: str = ""
    # How an object acts: by one rule, or by a flag.
    method: str = ""
    rule: str | None = None
    flag: str | None = None
    flag_position: int | None = None
    default: bool | None = None
    true: str | None = None
    false: str | None = None
    flag_at: str = "call"
    """Where the flag is given: at the acting call, or at the constructor of the object."""
    # How a constructor of environments takes its levels.
    default_levels: int | None = None
    keywords_in: str | None = None
    """The argument that holds the environment's keywords as a mapping, where they are not the call's own."""
    keywords_position: int | None = None
    factory: str | None = None
    """The argument that may be a function which makes the environment."""
    factory_position: int | None = None
    # How a function plays an environment itself.
    kind: str = ""
    environment: str = ""
    position: int | None = None
    environment_at: str = "call"
    """Where the environment is given: at the call itself, or at the constructor of the agent."""
    actor: str | None = None
    """The argument that acts; without it, or where it is not known, the repository's imports are asked."""
    actor_position: int | None = None
    actor_method: str | None = None
    """The method of the actor whose fact tells the rule."""


def table(name: str) -> dict[str, Any]:
    """A table of `audit/data`."""
    return shipped(f"audit/data/{name}.json")


@cache
def words(name: str) -> frozenset[str]:
    """A list of names that the scanner knows, e.g. methods that change an object's place and not what it is."""
    return frozenset(table("functions")["words"][name])


def pattern(name: str) -> re.Pattern[str]:
    """What names of a kind look like, e.g. of functions that evaluate; where a name is all there is, it is a guess."""
    return re.compile(table("functions")["patterns"][name])


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
def facts(kind: str) -> tuple[Fact, ...]:
    """The facts about `environments`, `actors`, `flags` (whose name says how any object acts) or `loops`."""
    return tuple(
        Fact(**{"name": name} | {key: value for key, value in row.items() if key != "names"})
        for row in table("facts")[kind]
        for name in row.get("names", [row.get("name", "")])
    )


def find_environment(name: str) -> Fact | None:
    """The fact about the constructor `name`, if any."""
    return next((fact for fact in facts("environments") if fact.name == name), None)


def find_actor(name: str, method: str) -> Fact | None:
    """The fact about `method` of an object made by `name`, which may be deeper in the same package."""
    starts = [fact for fact in facts("actors") if fact.method == method]
    fitting = [
        one for one in starts if name == one.name or name.startswith((f"{one.name}.", f"{one.name}()."))
    ]
    return max(fitting, key=lambda fact: len(fact.name), default=None)


def find_actor_by_call(text: str) -> Fact | None:
    """The fact about what a method gives back, e.g. `get_inference_policy`, where its object is not known."""
    tail = "()." + text.removesuffix("()").rsplit(".", 1)[-1]
    found = [fact for fact in facts("actors") if fact.name.endswith(tail) and fact.method == "__call__"]
    return found[0] if len({fact.rule for fact in found}) == 1 else None


def find_loops(name: str) -> list[Fact]:
    """The facts about the function `name`, or about the `learn` of a known package's agents."""
    found = [fact for fact in facts("loops") if fact.name == name]
    if not found and name.endswith(".learn"):
        agents = [fact for fact in facts("loops") if fact.environment_at == "constructor"]
        found = [fact for fact in agents if name.startswith(fact.name.rpartition(".")[0] + ".")][:1]
    return found
