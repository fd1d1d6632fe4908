"""Keys of the representation section: ctl (controls), d4 (ratio of two agents), geo16 (collection geometry).

The paper's plain keys name no game: `d4.*` belongs to the game whose two agents differ most, `geo16.*` to the game
collected under the second geometry (of several, the one that moves most). Every game also has its own keys
(`d4.fruitbot.8M.raw`, `geo16.heist.25M.fpn.factor`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gapfloor.escape import key_part
from gapfloor.report.cka_input import CkaRecord, seed_mean
from gapfloor.report.findings import Findings
from gapfloor.tables.cells import Cell, fixed

_Groups = dict[tuple[str, str], dict[str, tuple[CkaRecord, ...]]]


def cka_numbers(findings: Findings, records: tuple[CkaRecord, ...]) -> Iterator[tuple[str, Cell]]:
    """The keys that CKA results give."""
    groups = _group(findings, records)
    yield from _controls(groups)
    yield from _ratios(groups)
    yield from _geometry(groups)


def _group(findings: Findings, records: tuple[CkaRecord, ...]) -> _Groups:
    groups: _Groups = {}
    order = {agent.lower(): at for at, agent in enumerate(findings.source.agents)}
    for record in sorted(records, key=lambda record: order.get(record.agent.lower(), len(order))):
        agents = groups.setdefault((record.game, record.budget), {})
        agents[record.agent] = (*agents.get(record.agent, ()), record)
    return groups


def _controls(groups: _Groups) -> Iterator[tuple[str, Cell]]:
    scores: list[float] = []
    collapses: dict[str, list[float]] = {}
    for (game, budget), agents in groups.items():
        here: list[float] = []
        for members in agents.values():
            scores.append(seed_mean(members, lambda record: record.z))
            means = {
                name: seed_mean(members, lambda record, name=name: float(getattr(record, name)))  # type: ignore[misc]
                for name in "ABCD"
            }
            here += [_ratio(means["A"], means["B"]), _ratio(means["C"], means["D"])]
        for key in (f"{key_part(game)}.{key_part(budget)}", key_part(game)):
            collapses.setdefault(key, []).extend(value for value in here if math.isfinite(value))
    finite = [score for score in scores if math.isfinite(score)]
    if finite:
        yield "ctl.z.min", fixed(min(finite), 1)
        yield "ctl.z.max", fixed(max(finite), 1)
    for key, factors in collapses.items():
        if factors:
            yield f"ctl.{key}.collapse.min", fixed(min(factors), 1)
            yield f"ctl.{key}.collapse.max", fixed(max(factors), 1)


def _ratios(groups: _Groups) -> Iterator[tuple[str, Cell]]:
    found: list[tuple[float, str, dict[str, float]]] = []
    for (game, budget), agents in groups.items():
        if len(agents) < 2:
            continue
        first, second = list(agents.values())[:2]
        values = {
            "raw": _ratio(
                seed_mean(first, lambda record: record.as_computed),
                seed_mean(second, lambda record: record.as_computed),
            ),
            "analytic": _ratio(
                _ratio(
                    seed_mean(first, lambda record: record.as_computed),
                    seed_mean(first, lambda record: record.analytic),
                ),
                _ratio(
                    seed_mean(second, lambda record: record.as_computed),
                    seed_mean(second, lambda record: record.analytic),
                ),
            ),
        }
        by_seed = {record.seed: record for record in second}
        shared = sorted((record for record in first if record.seed in by_seed), key=_seed_order)
        for at, record in enumerate(shared, start=1):
            other = by_seed[record.seed]
            values[f"analytic.s{at}"] = _ratio(
                _ratio(record.as_computed, record.analytic), _ratio(other.as_computed, other.analytic)
            )
        stem = f"{key_part(game)}.{key_part(budget)}".rstrip(".")
        found.append((abs(math.log(values["raw"])) if values["raw"] > 0 else -1.0, stem, values))
    for _, stem, values in found:
        for name, value in values.items():
            yield f"d4.{stem}.{name}", _ratio_cell(name, value)
    if found:
        for name, value in max(found, key=lambda entry: entry[0])[2].items():
            yield f"d4.{name}", _ratio_cell(name, value)


def _geometry(groups: _Groups) -> Iterator[tuple[str, Cell]]:
    found: list[tuple[float, str, dict[str, float]]] = []
    for (game, budget), agents in groups.items():
        factors: dict[str, float] = {}
        for agent, members in agents.items():
            ratio = _ratio(
                seed_mean(members, lambda record: record.geo16),
                seed_mean(members, lambda record: record.as_computed),
            )
            if math.isfinite(ratio) and ratio > 0:
                # A factor says how far the value moves, whichever way.
                factors[key_part(agent.lower())] = max(ratio, 1 / ratio)
        if factors:
            stem = f"{key_part(game)}.{key_part(budget)}".rstrip(".")
            found.append((max(factors.values()), stem, factors))
    for _, stem, factors in found:
        for agent, factor in factors.items():
            yield f"geo16.{stem}.{agent}.factor", fixed(factor, 1)
    if found:
        for agent, factor in max(found, key=lambda entry: entry[0])[2].items():
            yield f"geo16.{agent}.factor", fixed(factor, 1)


def _ratio_cell(name: str, value: float) -> Cell:
    return fixed(value, 1 if name == "raw" else 2)


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if math.isfinite(top) and math.isfinite(bottom) and bottom != 0 else math.nan


def _seed_order(record: CkaRecord) -> tuple[float, str]:
    return (float(record.seed) if record.seed.isdigit() else math.inf, record.seed)
