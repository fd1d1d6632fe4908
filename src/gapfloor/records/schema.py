"""The columns of the episode table and of the cell table (contract 6 of the design)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

#: One row per episode. `rule` and `reference` are both "uniform" for the floor.
EPISODES = pa.schema(
    [
        ("game", pa.string()),
        ("mode", pa.string()),
        ("budget", pa.string()),
        ("agent", pa.string()),
        ("seed", pa.int64()),
        ("reference", pa.string()),
        ("rule", pa.string()),
        ("level_set", pa.string()),
        ("draw", pa.int64()),
        ("slot", pa.int32()),
        ("index", pa.int32()),
        ("level_seed", pa.int64()),
        ("episode_return", pa.float64()),
        ("length", pa.int32()),
    ]
)

#: The columns that say which cell a row belongs to, shared by both tables.
LABELS = ("game", "mode", "budget", "agent", "seed", "reference", "rule", "level_set", "draw")

#: One row per cell: its labels, then what was measured along the way. Entropies in nats.
CELLS = pa.schema(
    [
        *[EPISODES.field(name) for name in LABELS],
        ("n_steps", pa.int64()),
        ("entropy_raw", pa.float64()),
        ("entropy_first1024", pa.float64()),
        ("entropy_probe", pa.float64()),
        ("merged_state", pa.float64()),
        ("merged_game", pa.float64()),
        ("mean_ln_k", pa.float64()),
        ("k", pa.int64()),
        ("disagreement", pa.float64()),
        ("entropy_played", pa.float64()),
        ("action_counts", pa.list_(pa.int64())),
        ("device", pa.string()),
        ("backend", pa.string()),
        ("repeats", pa.int64()),
        ("policy", pa.string()),
        ("key", pa.string()),
    ]
)


def rows_to_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of `schema`; what a row lacks is null."""
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in schema.names} for row in rows], schema=schema
    )
