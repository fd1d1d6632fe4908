"""Randomness as taint: which calls draw, which compute, and what comes out when both meet.

The question behind every rule is whether a random source reaches `step`. A value is computed (from observations,
weights and constants), noise, a chosen action, or unknown; unknown alternatives are never dropped on the way. What is
known about libraries is data (`audit/data/functions.json`).
"""

from __future__ import annotations

import ast
import json
from functools import cache
from importlib import resources
from typing import Any

from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Computed,
    External,
    ExternalObject,
    Frame,
    Instance,
    KnownValue,
    Mapping,
    Noise,
    Option,
    Sequence,
    Unknown,
    describe,
)

#: Builtins that compute from what they are given.
_PURE_BUILTINS = frozenset(
    {
        "int",
        "float",
        "bool",
        "abs",
        "round",
        "len",
        "min",
        "max",
        "sum",
        "list",
        "tuple",
        "set",
        "sorted",
        "reversed",
        "zip",
        "enumerate",
        "divmod",
        "pow",
        "str",
    }
)
#: Rules that two operands can have without the result being a mixture of them.
_PLAIN = (KnownValue, Option, Computed, Mapping, Sequence)


@cache
def _table() -> dict[str, Any]:
    text = resources.files("gapfloor.audit").joinpath("data/functions.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


@cache
def is_deterministic_function(name: str) -> bool:
    """Whether a library function or layer computes the same value every time.

    >>> is_deterministic_function("torch.tanh"), is_deterministic_function("torch.nn.Dropout")
    (True, False)
    """
    if name in _PURE_BUILTINS:
        return True
    if noise_kind(name) is not None or name.startswith(tuple(_table()["not_numerical"])):
        return False
    last = name.rsplit(".", 1)[-1]
    rows = [row for row in _table()["deterministic"] if f"{name}.".startswith(row["prefix"])]
    return bool(rows) and not any(last in row.get("except", ()) for row in rows)


@cache
def noise_kind(name: str) -> str | None:
    """Which numbers a library function draws (uniform, normal, gumbel, other), or None.

    >>> noise_kind("numpy.random.rand"), noise_kind("torch.tanh")
    ('uniform', None)
    """
    module, _, last = name.rpartition(".")
    in_random = any(
        module == one or module.startswith((one + ".", one + "(")) for one in _table()["random_modules"]
    )
    for row in _table()["draws"]:
        if last in row["names"] and (in_random or module in ("torch", "tensorflow", "jax.random")):
            return str(row["kind"])
    return None


def is_noise_layer(name: str) -> bool:
    """Whether a layer draws in training mode."""
    return name.rsplit(".", 1)[-1] in _table()["noise_layers"]


def combine(
    operands: list[tuple[Alternative, ...]], node: ast.AST, frame: Frame, *, is_arithmetic: bool = False
) -> tuple[Alternative, ...]:
    """What an operation on several operands can give: each choice of action, each unknown, or a computed value."""
    chosen: list[list[Alternative]] = []
    noise: list[Alternative] = []
    found: list[Alternative] = []
    plain: list[Alternative] = []
    for operand in operands:
        actions = [item for item in operand if isinstance(item.value, Action)]
        if actions:
            chosen.append(actions)
        for item in operand:
            if isinstance(item.value, Noise):
                noise.append(item)
            elif is_plain(item):
                plain.append(item)
            elif not isinstance(item.value, Action):
                found.append(Alternative(Unknown(describe(node)), item.guards, item.marks))
    is_observed = any(isinstance(item.value, Computed) and item.value.is_observed for item in plain)
    if noise:
        found.extend(_noisy(chosen, noise, plain, operands, node, frame, is_arithmetic=is_arithmetic))
    elif len(chosen) > 1 and len({item.value.rule for group in chosen for item in group}) > 1:  # type: ignore[union-attr]
        marks = tuple(dict.fromkeys(mark for group in chosen for item in group for mark in item.marks))
        found.append(Alternative(Action("noisy", node, frame), marks=marks))
    elif chosen:
        found.extend(item for group in chosen for item in group)
        found.extend(_left_over(operands, chosen, node, frame))
    elif not found and len(operands) == 1:
        found.extend(
            Alternative(
                Computed(node, frame, isinstance(item.value, Computed) and item.value.is_observed),
                item.guards,
                item.marks,
            )
            for item in plain
        )
    if not found:
        found.append(Alternative(Computed(node, frame, is_observed)))
    return tuple(found)


def _left_over(
    operands: list[tuple[Alternative, ...]], chosen: list[list[Alternative]], node: ast.AST, frame: Frame
) -> list[Alternative]:
    """Where the operand that can be an action can also be something computed, that alternative survives."""
    for operand in operands:
        actions = [item for item in operand if isinstance(item.value, Action)]
        if actions and any(isinstance(item.value, Computed) for item in operand):
            return [
                Alternative(Computed(node, frame, item.value.is_observed), item.guards, item.marks)
                for item in operand
                if isinstance(item.value, Computed)
            ]
    return []


def _noisy(
    chosen: list[list[Alternative]],
    noise: list[Alternative],
    plain: list[Alternative],
    operands: list[tuple[Alternative, ...]],
    node: ast.AST,
    frame: Frame,
    *,
    is_arithmetic: bool,
) -> list[Alternative]:
    is_pure_noise = not chosen and not any(isinstance(item.value, Computed) for item in plain)
    if is_pure_noise:
        kept = noise[0].value
        assert isinstance(kept, Noise)
        return [Alternative(Noise(kept.kind, node, frame, kept.is_scaled), noise[0].guards)]
    if not chosen and is_arithmetic and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        kept = noise[0].value
        assert isinstance(kept, Noise)
        # Noise times something that a network gave: the spread of a policy.
        return [Alternative(Noise(kept.kind, node, frame, is_scaled=True), noise[0].guards)]
    kinds = {item.value.kind for item in noise if isinstance(item.value, Noise)}
    is_scaled = any(isinstance(item.value, Noise) and item.value.is_scaled for item in noise)
    if not chosen and kinds == {"gumbel"}:
        return [Alternative(Noise("gumbel", node, frame, is_scaled=True), noise[0].guards)]
    rule = "sampled" if kinds == {"normal"} and is_scaled and not chosen else "noisy"
    marks = tuple(dict.fromkeys(mark for group in chosen for item in group for mark in item.marks))
    return [Alternative(Action(rule, node, frame, rule == "sampled"), noise[0].guards, marks)]


def is_settled(alternatives: tuple[Alternative, ...]) -> bool:
    """Whether every alternative is an action or something that a network computed."""
    return bool(alternatives) and all(
        isinstance(item.value, Action) or (isinstance(item.value, Computed) and item.value.is_observed)
        for item in alternatives
    )


def is_plain(item: Alternative) -> bool:
    """Whether a value is known to carry no randomness of the policy."""
    value = item.value
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, ExternalObject):
        return is_deterministic_function(value.name) and not _reads_data(value.name)
    if isinstance(value, External):
        return is_deterministic_function(value.name)
    return isinstance(value, Instance)


def _reads_data(name: str) -> bool:
    """Whether a function reads a file: recorded actions, or a model of unknown kind."""
    return name.rsplit(".", 1)[-1] in ("load", "loadtxt", "fromfile", "open", "memmap", "read")
