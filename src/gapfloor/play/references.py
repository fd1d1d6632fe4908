"""References stricter than the floor: by name, as the cells that measure them.

Uniform play remains THE floor. `best-constant` is the action that returns most on the training levels, reported on
both sets; `random-weights:ENCODER:COUNT` are networks that were never trained, under argmax; `blind:RUN` is an agent
that was trained on black images, sampled as it was trained; `upper:POLICY` is a policy to look up to. Those that need
no network (`constant:A`, `sticky:P`) are in `gapfloor.policies.references`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.engines.protocol import EngineSpec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import PolicyError, StoreError, UsageError, unknown_name
from gapfloor.play.cell import CellSpec, Inference, Run
from gapfloor.play.group import Group, cell_labels, fingerprint_of, levels_to_try
from gapfloor.play.protocol import Protocol
from gapfloor.play.summary import read_cells, summarise
from gapfloor.policies.fingerprint import describe_backend, instruction_set
from gapfloor.policies.load import PolicySource
from gapfloor.policies.random_weights import PREFIX as RANDOM_WEIGHTS
from gapfloor.policies.references import Constant, Reference, parse_reference
from gapfloor.records.store import DESIGN_PARTS, Store

BEST_CONSTANT = "best-constant"
BLIND = "blind"
UPPER = "upper"
#: Every form that `--reference` takes.
REFERENCE_FORMS = (
    "uniform",
    "constant:A",
    "sticky:P",
    BEST_CONSTANT,
    f"{RANDOM_WEIGHTS}:ENCODER:COUNT",
    f"{BLIND}:RUN",
    f"{UPPER}:POLICY",
)
#: How many untrained networks are played unless a number is given.
DEFAULT_NETWORKS = 5

#: Plays the groups' cells that the store does not hold yet.
Play = Callable[[Sequence[Group]], None]


@dataclass(frozen=True)
class _Network:
    """A policy that is filed as a reference."""

    name: str
    source: PolicySource
    rule: str
    seed: int | None


def check_references(names: Sequence[str]) -> None:
    """Refuse a name that is no reference, or is there twice, before anything is played."""
    for name in names:
        if list(names).count(name) > 1:
            raise UsageError(f"The reference '{name}' is named twice: name each reference once.")
        if name != BEST_CONSTANT and not _networks(name):
            _parse_plain(name)


def check_playable(names: Sequence[str], protocol: Protocol, *, device: str = "cpu") -> None:
    """Refuse an action that a game does not have and a policy that does not load, before a store is touched."""
    for engine in protocol.engines:
        for name in names:
            if name == BEST_CONSTANT:
                _training_constants(protocol, engine)
                continue
            networks = _networks(name)
            if networks:
                for network in networks:
                    _load(network, engine, device)
            elif name != "uniform":
                _parse_plain(name).check(_n_actions(engine))


def recorded_name(name: str) -> tuple[str, int]:
    """The name that records carry, and how many networks stand behind it.

    >>> recorded_name("random-weights:impala:5"), recorded_name("blind:runs/mine")
    (('random-weights:impala', 5), ('blind', 1))
    """
    if name == BEST_CONSTANT:
        return name, 1
    networks = _networks(name)
    return (networks[0].name, len(networks)) if networks else (str(_parse_plain(name)), 1)


def beside_file(name: str, home: Path, *, game: str) -> str:
    """A reference of a study file, with its run's path taken from the file's own folder and `{game}` filled in."""
    kind, _, argument = name.replace("{game}", game).partition(":")
    if kind in (BLIND, UPPER) and (home / argument).exists():
        return f"{kind}:{home / argument}"
    return name.replace("{game}", game)


def measure_references(
    names: Sequence[str],
    *,
    protocol: Protocol,
    store: Store,
    play: Play,
    batch: int,
    device: str = "cpu",
) -> list[CellSpec]:
    """Measure the named references on every game and level set of `protocol`; returns the cells to be reported."""
    engines = protocol.engines
    groups = [
        g for engine in engines for name in names for g in _groups(name, protocol, engine, batch, device)
    ]
    reported = [cell for group in groups for cell in group.cells]
    refuse_other_content(store, reported)
    constants: dict[EngineSpec, list[CellSpec]] = {}
    if BEST_CONSTANT in names:
        constants = {engine: _training_constants(protocol, engine) for engine in engines}
        for engine, cells in constants.items():
            by_action = {cell.rule: tuple(c for c in cells if c.rule == cell.rule) for cell in cells}
            groups += [Group(engine, mine) for mine in by_action.values()]
    # All games in one call: workers start once.
    play(groups)
    best = [
        Group(engine, tuple(_best_constant(cells, protocol, engine, store)))
        for engine, cells in constants.items()
    ]
    refuse_other_content(store, [cell for group in best for cell in group.cells])
    play(best)
    return reported + [cell for group in best for cell in group.cells]


def refuse_other_content(store: Store, cells: Sequence[CellSpec]) -> None:
    """Refuse one name for two contents (`upper:A` and `upper:B`, now or earlier): the analysis would mix them."""
    mine: dict[tuple[Any, ...], CellSpec] = {}
    for cell in cells:
        place = _filed(cell_labels(cell), cell.content())
        other = mine.setdefault(place, cell)
        if other.key != cell.key:
            raise UsageError(
                f"Two different policies would both be filed as the reference {cell.run.name} of {cell.engine.game}: "
                "name one, or measure the other in another --store."
            )
    for stored in store.cells():
        found = mine.get(_filed(stored.manifest.labels, stored.manifest.content))
        if found is not None and found.key != stored.manifest.key:
            theirs, content = stored.manifest.content, found.content()
            changed = [
                f"{k}: {theirs.get(k)} there, {v} here" for k, v in content.items() if theirs.get(k) != v
            ]
            raise StoreError(
                f"The store {store.root} holds another {found.run.name} of {found.engine.game} "
                f"({'; '.join(changed)}): use another --store."
            )


def _filed(labels: Mapping[str, Any], content: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where the analysis puts a cell: its labels, in its own design, engine and options."""
    design = tuple(str(content.get(part)) for part in DESIGN_PARTS)
    return (*(labels[name] for name in sorted(labels)), *design)


def _groups(name: str, protocol: Protocol, engine: EngineSpec, batch: int, device: str) -> list[Group]:
    if name == BEST_CONSTANT:
        return []
    networks = _networks(name)
    if not networks:
        return [Group(engine, tuple(plain_cells(protocol, engine, _parse_plain(name))))]
    return [_network_group(network, protocol, engine, batch, device) for network in networks]


def plain_cells(
    protocol: Protocol, engine: EngineSpec, reference: Reference, *, label: str = ""
) -> list[CellSpec]:
    """The cells of a reference that needs no network, filed under its own name or `label`."""
    return [
        CellSpec(
            engine=engine,
            run=Run(reference=label or str(reference)),
            policy=f"{label}={reference}" if label else str(reference),
            rule=str(reference),
            level_set=role,
            levels=levels,
            draw=draw,
            design=protocol.design,
        )
        for role, levels in protocol.level_sets
        for draw in protocol.draws
    ]


def _parse_plain(name: str) -> Reference:
    if name.partition(":")[0] not in ("uniform", "constant", "sticky"):
        raise unknown_name("reference", name, REFERENCE_FORMS)
    return parse_reference(name)


def _networks(name: str) -> list[_Network]:
    """The policies behind a reference's name; none where it needs none."""
    kind, _, argument = name.partition(":")
    if kind == RANDOM_WEIGHTS:
        encoder, _, count = argument.partition(":")
        number = int(count) if count.isdecimal() else DEFAULT_NETWORKS if not count else 0
        if number < 1:
            raise UsageError(
                f"The reference '{name}' needs a number of networks, as {RANDOM_WEIGHTS}:impala:5."
            )
        encoder = encoder or "impala"
        return [
            _Network(
                f"{RANDOM_WEIGHTS}:{encoder}",
                PolicySource(f"{RANDOM_WEIGHTS}:{encoder}:{seed}"),
                "greedy",
                seed,
            )
            for seed in range(1, number + 1)
        ]
    if kind in (BLIND, UPPER):
        if not argument:
            raise UsageError(f"The reference '{name}' needs a policy after the colon, as {kind}:RUN.")
        return [_Network(kind, PolicySource(argument), "sampled", None)]
    return []


def _network_group(
    network: _Network, protocol: Protocol, engine: EngineSpec, batch: int, device: str
) -> Group:
    source, policy, header = _load(network, engine, device)
    backend, _ = describe_backend(policy)
    seed = network.seed if network.seed is not None else header.get("seed")
    cells = [
        CellSpec(
            engine=engine,
            run=Run(reference=network.name, seed=seed),
            policy=fingerprint_of(policy, name=source.name, engine=engine, batch=batch),
            rule=network.rule,
            level_set=role,
            levels=levels,
            draw=draw,
            design=protocol.design,
            inference=Inference(batch, backend, instruction_set()),
        )
        for role, levels in protocol.level_sets
        for draw in protocol.draws
    ]
    return Group(engine, tuple(cells), source)


def _load(network: _Network, engine: EngineSpec, device: str) -> tuple[PolicySource, Any, Mapping[str, Any]]:
    """The policy behind a reference, with its header; refused where it cannot play this game as that reference."""
    source = replace(network.source, device=device)
    if network.name.startswith(RANDOM_WEIGHTS) and engine.engine == "gymnasium":
        raise UsageError(
            f"{network.name} reads ProcGen's images, not {engine.game}'s observations: leave it out."
        )
    policy = source.load()
    header = getattr(policy, "header", None) or {}
    if network.name == BLIND and not header.get("blind"):
        raise PolicyError(f"{source.name} sees its observations: train one with gapfloor train --blind.")
    if header.get("game", engine.game) != engine.game:
        raise PolicyError(f"{source.name} was trained on {header['game']}, not on {engine.game}.")
    return source, policy, header


def _n_actions(engine: EngineSpec) -> int:
    small = engine_from_spec(engine, slots=1, levels=levels_to_try(engine))
    try:
        return small.n_actions
    finally:
        small.close()


def _training_constants(protocol: Protocol, engine: EngineSpec) -> list[CellSpec]:
    """Every constant action on the training levels: what the best one is chosen from."""
    training = tuple(pair for pair in protocol.level_sets if pair[0] == "train")
    if not training:
        raise UsageError("best-constant is chosen on training levels: name them, as --train 0:200.")
    actions = range(_n_actions(engine))
    narrowed = replace(protocol, level_sets=training)
    return [cell for action in actions for cell in plain_cells(narrowed, engine, Constant(action))]


def _best_constant(
    constants: Sequence[CellSpec], protocol: Protocol, engine: EngineSpec, store: Store
) -> list[CellSpec]:
    """The action with the highest training return (ties to the lowest number), on every level set."""
    returns = read_cells(store, constants)
    names = list(dict.fromkeys(cell.rule for cell in constants))
    means = [summarise([returns[c.key] for c in constants if c.rule == name])[0] for name in names]
    chosen = parse_reference(names[int(np.argmax(means))])
    return plain_cells(protocol, engine, chosen, label=BEST_CONSTANT)


def best_constant_notes(cells: Sequence[CellSpec]) -> list[str]:
    """Which action `best-constant` is, in words."""
    chosen = {cell.engine.game: cell.rule for cell in cells if cell.run.reference == BEST_CONSTANT}
    return [
        f"The best constant action of {game} on its training levels is {rule.partition(':')[2]}."
        for game, rule in chosen.items()
    ]
