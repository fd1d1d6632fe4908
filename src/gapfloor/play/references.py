"""The references by name, as the cells that measure them.

Uniform play is the floor; the others are stricter. `best-constant` is the action with the highest return on the
training levels, reported on both sets. `random-weights:ENCODER:COUNT` are networks that were never trained, under
argmax. `blind:RUN` is an agent that was trained on black images, sampled as in training. `upper:POLICY` is a policy
that serves as an upper mark. Those that need no network (`uniform`, `constant:A`, `sticky:P`) are in
`gapfloor.policies.references`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gapfloor.engines.engine import EngineSpec
from gapfloor.errors import PolicyError, UsageError, refuse_repeats
from gapfloor.play.candidate import action_space_of, try_policy
from gapfloor.play.cell import CellSpec, Run
from gapfloor.play.group import CellGroup, group_of
from gapfloor.play.protocol import InferenceSettings, Protocol
from gapfloor.policies.formats.spec import RANDOM_WEIGHTS
from gapfloor.policies.load import PolicySource
from gapfloor.policies.references import Constant, Reference, Uniform, parse_reference
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import episode_table
from gapfloor.rules.rule import parse_rule

UNIFORM = str(Uniform())
BEST_CONSTANT = "best-constant"
BLIND = "blind"
UPPER = "upper"
#: How many untrained networks are played unless a number is given.
DEFAULT_NETWORKS = 5


@dataclass(frozen=True)
class _Network:
    """A policy that is filed as a reference."""

    name: str
    source: PolicySource
    rule: str
    seed: int | None


def check_references(names: Sequence[str]) -> None:
    """Refuse a name that is not a reference, or that is given twice, before anything is played."""
    refuse_repeats("reference", names)
    for name in names:
        recorded_name(name)


def needs_network(name: str) -> bool:
    """Whether a network plays the reference and so looks at the game.

    >>> needs_network("uniform"), needs_network("best-constant"), needs_network("random-weights:impala:5")
    (False, False, True)
    """
    return bool(_networks(name))


def recorded_name(name: str) -> tuple[str, int]:
    """The name that records carry, and the number of networks behind it.

    >>> recorded_name("random-weights:impala:5"), recorded_name("blind:runs/mine")
    (('random-weights:impala', 5), ('blind', 1))
    """
    if name == BEST_CONSTANT:
        return name, 1
    networks = _networks(name)
    return (networks[0].name, len(networks)) if networks else (str(parse_reference(name)), 1)


def relative_to_file(name: str, home: Path, *, game: str) -> str:
    """A reference of a study file: the path of its run is relative to that file, and `{game}` is filled in."""
    kind, _, argument = name.replace("{game}", game).partition(":")
    if kind in (BLIND, UPPER) and (home / argument).exists():
        return f"{kind}:{home / argument}"
    return name.replace("{game}", game)


def reference_groups(
    names: Sequence[str], protocol: Protocol, engine: EngineSpec, inference: InferenceSettings
) -> list[CellGroup]:
    """The cells of the named references, one group per policy.

    `best-constant` is left out, because it must be chosen by playing (`trial_constants`, `best_constant`). An action
    that the game does not have and a policy that does not load are refused here, before a store is touched.
    """
    groups: list[CellGroup] = []
    for name in names:
        networks = _networks(name)
        for network in networks:
            source = replace(network.source, device=inference.device, backend=inference.backend)
            groups.append(_network_group(replace(network, source=source), protocol, engine, inference.batch))
        if not networks and name != BEST_CONSTANT:
            reference = parse_reference(name)
            if reference != Uniform():
                reference.check(action_space_of(engine))
            groups.append(CellGroup(engine, plain_cells(protocol, engine, reference)))
    return groups


def trial_constants(protocol: Protocol, engine: EngineSpec) -> list[CellGroup]:
    """Every constant action on the training levels: what the best one is chosen from."""
    training = tuple(pair for pair in protocol.level_sets if pair[0] == "train")
    if not training:
        raise UsageError("best-constant is chosen on training levels: name some, e.g. --train 0:200.")
    narrowed = replace(protocol, level_sets=training)
    actions = map(Constant, action_space_of(engine).constants())
    return [CellGroup(engine, plain_cells(narrowed, engine, each)) for each in actions]


def best_constant(trials: Sequence[CellGroup], protocol: Protocol, store: Store) -> CellGroup:
    """The action with the highest training return (ties to the lowest number), on every level set."""
    means = []
    for trial in trials:
        stored = [store.cell(cell.file_name) for cell in trial.cells]
        episodes = episode_table(stored, columns=("episode_return",))
        means.append(episodes.column("episode_return").to_numpy().mean())
    chosen = trials[int(np.argmax(means))]
    reference = parse_reference(chosen.cells[0].rule)
    return CellGroup(chosen.engine, plain_cells(protocol, chosen.engine, reference, label=BEST_CONSTANT))


def plain_cells(
    protocol: Protocol, engine: EngineSpec, reference: Reference, *, label: str = ""
) -> tuple[CellSpec, ...]:
    """The cells of a reference that needs no network, filed under its own name or `label`."""
    policy = f"{label}={reference}" if label else str(reference)
    return protocol.cells(engine, Run(reference=label or str(reference)), policy=policy, rule=str(reference))


def _networks(name: str) -> list[_Network]:
    """The policies behind a reference's name; an empty list where it needs no policy."""
    kind, _, argument = name.partition(":")
    if kind == RANDOM_WEIGHTS:
        encoder, _, count = argument.partition(":")
        number = int(count) if count.isdecimal() else DEFAULT_NETWORKS if not count else 0
        if number < 1:
            raise UsageError(
                f"The reference '{name}' needs a number of networks, e.g. {RANDOM_WEIGHTS}:impala:5."
            )
        encoder = encoder or "impala"
        name = f"{RANDOM_WEIGHTS}:{encoder}"
        return [
            _Network(name, PolicySource(f"{name}:{seed}"), "greedy", seed) for seed in range(1, number + 1)
        ]
    if kind in (BLIND, UPPER):
        if not argument:
            raise UsageError(f"The reference '{name}' needs a policy after the colon, e.g. {kind}:RUN.")
        return [_Network(kind, PolicySource(argument), "sampled", None)]
    return []


def _network_group(network: _Network, protocol: Protocol, engine: EngineSpec, batch: int) -> CellGroup:
    """The cells of a policy that is filed as a reference; refused where it cannot play this game as that reference."""
    source = network.source
    if network.name.startswith(RANDOM_WEIGHTS) and engine.engine == "gymnasium":
        raise UsageError(
            f"{network.name} reads ProcGen's images, not {engine.game}'s observations: leave it out."
        )
    tried = try_policy(source, engine=engine, batch=batch)
    if network.name == BLIND and not tried.header.get("blind"):
        raise PolicyError(
            f"{source.name} sees its observations: train a blind run with gapfloor train --blind."
        )
    seed = network.seed if network.seed is not None else tried.header.get("seed")
    candidate = replace(tried, run=Run(reference=network.name, seed=seed))
    return group_of(candidate, protocol, engine, [parse_rule(network.rule)])
