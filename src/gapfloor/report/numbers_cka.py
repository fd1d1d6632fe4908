"""Keys of the representation section: ctl (controls), d4 (ratio of two agents), geo16 (collection geometry).

The paper's plain keys name no game: `d4.*` belongs to the game whose two agents differ most, `geo16.*` to the game
collected under the second geometry (of several, the one that moves most). Every game also has its own keys
(`d4.fruitbot.8M.raw`, `geo16.heist.25M.fpn.factor`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from gapfloor.escape import key_part
from gapfloor.report.cka_input import CkaRecord, seed_means
from gapfloor.report.findings import Findings
from gapfloor.tables.cells import Cell, fixed

#: Game and budget as parts of a key -> the records of each agent, in the order of the plan.
_Groups = dict[tuple[str, str], dict[str, list[CkaRecord]]]


def cka_numbers(findings: Findings, records: Sequence[CkaRecord]) -> Iterator[tuple[str, Cell]]:
    """The keys that CKA results give."""
    groups: _Groups = {}
    for record in sorted(records, key=lambda record: findings.agent_place(record.agent)):
        place = key_part(record.game), key_part(record.budget)
        groups.setdefault(place, {}).setdefault(record.agent, []).append(record)
    yield from _controls(groups)
    ratios = {
        place: _ratios(*list(agents.values())[:2]) for place, agents in groups.items() if len(agents) > 1
    }
    moves = {place: factors for place, agents in groups.items() if (factors := _moves(agents))}
    yield from _with_largest(
        "d4", ratios, lambda values: abs(math.log(values["raw"])) if values["raw"] > 0 else -1.0
    )
    yield from _with_largest("geo16", moves, lambda factors: max(factors.values()))


def _controls(groups: _Groups) -> Iterator[tuple[str, Cell]]:
    """The smallest and largest z, and by how much shuffling the rows lowers CKA."""
    ranges: dict[str, list[float]] = {"z": []}
    for (game, budget), agents in groups.items():
        for mean in map(seed_means, agents.values()):
            ranges["z"].append(mean.z)
            for key in (f"{game}.{budget}.collapse", f"{game}.collapse"):
                ranges.setdefault(key, []).extend((_ratio(mean.A, mean.B), _ratio(mean.C, mean.D)))
    for key, values in ranges.items():
        if finite := [value for value in values if math.isfinite(value)]:
            yield f"ctl.{key}.min", fixed(min(finite), 1)
            yield f"ctl.{key}.max", fixed(max(finite), 1)


def _ratios(first: list[CkaRecord], second: list[CkaRecord]) -> dict[str, float]:
    """The CKA of the first agent over that of the second, as computed and in units of its null, also seed by seed."""
    values = {"raw": _ratio(seed_means(first).as_computed, seed_means(second).as_computed)}
    by_seed = {record.seed: record for record in second}
    pairs = [
        (record, by_seed[record.seed]) for record in sorted(first, key=_seed_order) if record.seed in by_seed
    ]
    for at, (a, b) in enumerate([(seed_means(first), seed_means(second)), *pairs]):
        name = f".s{at}" if at else ""
        values[f"analytic{name}"] = _ratio(
            _ratio(a.as_computed, a.analytic), _ratio(b.as_computed, b.analytic)
        )
    return values


def _moves(agents: dict[str, list[CkaRecord]]) -> dict[str, float]:
    """How far another geometry moves the CKA of each agent, whichever way."""
    means = {agent: seed_means(members) for agent, members in agents.items()}
    ratios = {agent: _ratio(mean.geo16, mean.as_computed) for agent, mean in means.items()}
    return {
        f"{key_part(agent.lower())}.factor": max(ratio, 1 / ratio)
        for agent, ratio in ratios.items()
        if math.isfinite(ratio) and ratio > 0
    }


def _with_largest(
    prefix: str,
    found: dict[tuple[str, str], dict[str, float]],
    size: Callable[[dict[str, float]], float],
) -> Iterator[tuple[str, Cell]]:
    """Keys with their game and budget, then the plain keys of the game with the largest value."""
    plain = [((), max(found.values(), key=size))] if found else []
    for place, values in (*found.items(), *plain):
        for name, value in values.items():
            key = ".".join(filter(None, (prefix, *place, name)))
            yield key, fixed(value, 2 if name.startswith("analytic") else 1)


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if math.isfinite(top) and math.isfinite(bottom) and bottom != 0 else math.nan


def _seed_order(record: CkaRecord) -> tuple[float, str]:
    return (float(record.seed) if record.seed.isdigit() else math.inf, record.seed)
