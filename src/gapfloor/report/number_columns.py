"""Which numbers a row gives: for each kind of row a list of keys and how the value is printed.

`{}` in a key stands for the name of the row, e.g. `miner.8M.s.test`. docs/report.md explains the keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gapfloor.analysis.rows import GapRow
from gapfloor.statistics.conventions import NAN, Pair
from gapfloor.statistics.estimate import Estimate
from gapfloor.tables.cells import (
    Cell,
    call_words,
    count_word,
    fixed,
    integer,
    p_value,
    percent_number,
)

#: Keys with what makes their value from a row.
NumberColumns = tuple[tuple[str, Callable[[Any], Cell]], ...]


def _estimate(key: str, value: Callable[[Any], float], ends: Callable[[Any], Pair]) -> NumberColumns:
    """A difference with and without its sign, and the ends of its interval."""
    return (
        (key, lambda row: fixed(value(row), sign=True)),
        (f"{key}.u", lambda row: fixed(value(row))),
        (f"{key}.lo", lambda row: fixed(ends(row)[0])),
        (f"{key}.hi", lambda row: fixed(ends(row)[1])),
    )


def _tested(row: GapRow, method: str) -> Estimate:
    """What was tested of a gap, if it was by this method."""
    return row.estimate if row.estimate.method == method else Estimate(value=NAN)


RETURN: NumberColumns = (
    ("{}", lambda row: fixed(row.mean)),
    ("{}.sem", lambda row: fixed(row.sem)),
)
FLOOR: NumberColumns = (
    ("floor.{}", lambda row: fixed(row.mean)),
    ("floor.{}.sem", lambda row: fixed(row.sem)),
    ("floor.{}.n", lambda row: integer(row.n)),
)
DELTA: NumberColumns = (
    *_estimate("d.{}", lambda row: row.delta.value, lambda row: row.delta.interval),
    ("d.{}.p", lambda row: p_value(row.delta.p)),
    ("d.{}.ph", lambda row: p_value(row.decision.p_adjusted)),
    ("d.{}.ptost", lambda row: p_value(row.equivalence.p)),
    ("d.{}.z", lambda row: fixed(row.z, 1)),
    ("d.{}.n", lambda row: integer(row.n)),
    ("d.{}.k", lambda row: integer(row.runs_above)),
    ("d.{}.label", lambda row: call_words(row.call)),
    ("ratio.{}", lambda row: fixed(row.ratio, 1)),
)
GAP: NumberColumns = (
    *_estimate("gap.{}", lambda row: row.gap, lambda row: _tested(row, "paper").interval),
    ("gap.{}.p", lambda row: p_value(row.estimate.p)),
    ("gap.{}.ph", lambda row: p_value(row.decision.p_adjusted)),
    ("gap.{}.z", lambda row: fixed(row.stouffer_z)),
    ("gap.{}.n", lambda row: integer(row.n)),
    ("gap.{}.label", lambda row: Cell(row.call, row.call, (row.call,))),
    # By the recommended method the gap adjusted for the floor's is tested, not the gap itself.
    *_estimate(
        "adj.{}",
        lambda row: _tested(row, "recommended").value,
        lambda row: _tested(row, "recommended").interval,
    ),
)
#: The differences between sampled and greedy: rd of returns, gd of gaps.
PAIR: NumberColumns = (
    *_estimate("{}", lambda row: row.difference.value, lambda row: row.difference.interval),
    ("{}.p", lambda row: p_value(row.difference.p)),
    ("{}.n", lambda row: integer(row.n)),
    ("{}.ks", lambda row: integer(row.runs_first_higher)),
    ("{}.kg", lambda row: integer(row.runs_second_higher)),
)
AGENT: dict[str, NumberColumns] = {
    "train": (
        ("enc.{}", lambda row: fixed(row.train)),
        ("enc.{}.z", lambda row: fixed(row.z_train, 1)),
    ),
    "test": (
        ("enc.{}", lambda row: fixed(row.test)),
        ("enc.{}.z", lambda row: fixed(row.z_test, 1)),
    ),
}
#: Differences between agents: encd, and encpd with the draws one at a time.
AGENT_DIFFERENCE: NumberColumns = (
    *_estimate("encd.{}", lambda row: row.difference.value, lambda row: row.difference.interval),
    ("encd.{}.p", lambda row: p_value(row.difference.p)),
    ("encpd.{}.pmin", lambda row: p_value(row.p_draw_min)),
    ("encpd.{}.pmax", lambda row: p_value(row.p_draw_max)),
)
AGENT_SHARE: NumberColumns = (("encd.{}", lambda row: percent_number(row.share_from_training)),)
SCREEN: NumberColumns = (
    ("H.{}", lambda row: fixed(row.entropy, 3)),
    ("H.{}.pct", lambda row: fixed(row.fraction * 100, 1)),
    ("H.{}.probe", lambda row: fixed(row.entropy_probe, 3)),
    ("H.{}.first", lambda row: fixed(row.entropy_first, 3)),
    ("H.{}.greedy", lambda row: fixed(row.entropy_greedy, 3)),
    ("H.{}.state", lambda row: fixed(row.merged_state, 3)),
    ("H.{}.game", lambda row: fixed(row.merged_game, 3)),
    ("H.{}.share", lambda row: percent_number(row.share)),
    ("H.{}.k", lambda row: integer(row.k)),
    ("H.{}.tier", lambda row: Cell(row.tier, row.tier, (row.tier,))),
)
SCORE: NumberColumns = (("cobbe.{}", lambda row: fixed(row.score)),)
MERGED_DELTA: NumberColumns = (
    ("m.{}.d", lambda row: fixed(row.delta.value, sign=True)),
    ("m.{}.ph", lambda row: p_value(row.decision.p_adjusted)),
    ("m.{}.label", lambda row: call_words(row.call)),
)
MERGED_DISAGREEMENT: NumberColumns = (("m.{}.dis", lambda row: percent_number(row.share)),)
MERGED_PAIR: NumberColumns = (
    ("m.{}.mg", lambda row: fixed(row.difference.value, sign=True)),
    ("m.{}.mg.p", lambda row: p_value(row.difference.p)),
)


def _count(field: str, key: str) -> NumberColumns:
    """A count as a numeral and as a word."""
    return (
        (f"count.{key}.{{}}", lambda row: integer(getattr(row, field))),
        (f"count.{key}.{{}}.word", lambda row: count_word(getattr(row, field))),
    )


SCREEN_SUMMARY: NumberColumns = (
    *_count("raw", "raw"),
    *_count("merged_state", "state"),
    *_count("merged_game", "game"),
    ("share.min.{}", lambda row: percent_number(row.share_min)),
    ("share.max.{}", lambda row: percent_number(row.share_max)),
)
CALL_COUNT: NumberColumns = (
    *_count("above", "above"),
    *_count("below", "below"),
    *_count("equivalent", "equivalent"),
    *_count("not_distinguishable", "nd"),
    *_count("games", "games"),
    *_count("z_not_above", "v1atbelow"),
)
