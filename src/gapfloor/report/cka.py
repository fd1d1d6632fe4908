"""CKA results as a report reads them, JSON files below `results/cka/` of a store, and the numbers that they give.

A file holds one record, a list of records, or `{"records": [...]}`. A record is one checkpoint, with the fields of
`CkaRecord` (`encoder` is read as `agent`). Only the run and `as_computed` are needed; what is absent leaves its table
entry or number out.

Keys of numbers begin with ctl (controls), d4 (ratio of two agents) or geo16 (collection geometry). The paper's plain
keys name no game: `d4.*` belongs to the game whose two agents differ most, `geo16.*` to the game collected under the
second geometry (of several, the one that moves most). Every game also has its own keys (`d4.fruitbot.8M.raw`,
`geo16.heist.25M.fpn.factor`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gapfloor.errors import UsageError
from gapfloor.escape import key_part
from gapfloor.input_files import read_input_text
from gapfloor.report.findings import Findings
from gapfloor.settings import from_table, parse_json
from gapfloor.tables.cells import Cell, fixed

_NAN = float("nan")
_NUMBERS = (
    "as_computed", "perm_mean", "perm_sd", "z", "analytic", "pr", "A", "B", "C", "D", "geo16",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CkaRecord:
    """One checkpoint's CKA with its controls; NaN where a field was not given."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    seed: str
    """The seed of the run."""
    budget: str
    """Label of the training budget, e.g. 8M; empty if there is none."""
    n: int | None = None
    """Rows compared."""
    n_control: int | None = None
    """Rows of the controls A to D."""
    permutations: int | None = None
    """Shuffles behind the null."""
    as_computed: float
    """CKA of training rows against held-out rows that share slot and step."""
    perm_mean: float = _NAN
    """Mean CKA with one side's rows shuffled."""
    perm_sd: float = _NAN
    """Its standard deviation over shuffles."""
    z: float = _NAN
    """(as_computed - perm_mean) / perm_sd."""
    analytic: float = _NAN
    """That mean without shuffling: sqrt(PR_X PR_Y) / (n - 1)."""
    pr: float = _NAN
    """Participation ratio: how many directions the training features fill."""
    A: float = _NAN
    """Half of the training slots against held-out rows at the same step."""
    B: float = _NAN
    """A with one side's rows shuffled."""
    C: float = _NAN
    """The same training rows against those of the other half of the training slots."""
    D: float = _NAN
    """C with one side's rows shuffled."""
    geo16: float = _NAN
    """As computed with 16 slots x 64 steps, nothing else changed."""
    n_seeds: int = 1
    """How many seeds the numbers are means of."""


def read_cka(folder: Path) -> tuple[CkaRecord, ...]:
    """All records below `folder`, in the order of file names; none where there is no such folder."""
    records: list[CkaRecord] = []
    for path in sorted(Path(folder).glob("*.json")):
        document = parse_json(read_input_text(path), source=f"The file of CKA results {path}")
        if isinstance(document, Mapping) and isinstance(document.get("records"), list):
            document = document["records"]
        entries = document if isinstance(document, list) else [document]
        records += [_record(entry, path) for entry in entries]
    return tuple(records)


def seed_means(records: Sequence[CkaRecord]) -> CkaRecord:
    """The means of every number over the seeds of an agent; NaN where a seed lacks one."""
    means = {name: sum(getattr(record, name) for record in records) / len(records) for name in _NUMBERS}
    return replace(records[0], seed="", n_seeds=len(records), **means)


def _record(entry: Any, path: Path) -> CkaRecord:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{path} holds {type(entry).__name__} where a CKA record (an object) was expected.")
    given = {"agent": entry.get("encoder"), **entry}
    for name in ("game", "agent", "as_computed"):
        if given.get(name) is None:
            raise UsageError(
                f"{path} has a CKA record without `{name}`. See research-notes/cka.md for the fields."
            )
    known = {field.name: given.get(field.name) for field in fields(CkaRecord)}
    labels = {name: str(given.get(name, "")) for name in ("game", "mode", "agent", "seed", "budget")}
    present = {name: value for name, value in known.items() if value is not None}
    return from_table(CkaRecord, present | labels, source=str(path))


#: Game and budget as parts of a key -> the records of each agent, in the order of the plan.
_Groups = dict[tuple[str, str], dict[str, list[CkaRecord]]]


def cka_numbers(findings: Findings, records: Sequence[CkaRecord]) -> Iterator[tuple[str, Cell]]:
    """The keys that CKA results give."""
    groups: _Groups = {}
    for record in sorted(records, key=lambda record: findings.order_of("", record.agent)):
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
    ordered = sorted(
        first, key=lambda each: (float(each.seed) if each.seed.isdigit() else math.inf, each.seed)
    )
    pairs = [(record, by_seed[record.seed]) for record in ordered if record.seed in by_seed]
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
