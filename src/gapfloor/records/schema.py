"""The columns of the episode table and of the cell table (contract 6 of the design), with what each means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: One row per episode: column -> its type and meaning.
EPISODE_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "game": (pa.string(), "The game, or the environment's name."),
    "mode": (pa.string(), "Distribution mode of the game: easy, hard, ..."),
    "budget": (pa.string(), "Label of the training budget, e.g. 8M; empty if there is none."),
    "agent": (
        pa.string(),
        "The agent (encoder or algorithm) by name. `encoder` is accepted in files from elsewhere.",
    ),
    "seed": (pa.int64(), "The seed of the run; empty for references."),
    "reference": (pa.string(), "The policy that knows nothing; `uniform` is the floor. Empty for a run."),
    "rule": (
        pa.string(),
        "How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T. `uniform` for the floor.",
    ),
    "level_set": (pa.string(), "`train` or `test` (held-out)."),
    "draw": (pa.int64(), "Seed of the level draw."),
    "slot": (
        pa.int32(),
        "The slot that the schedule gave the episode to; in a census the level's place in its set.",
    ),
    "index": (
        pa.int32(),
        "The episode's place in its slot (burn-in comes first and is not kept); in a census the repeat.",
    ),
    "level_seed": (pa.int64(), "The level that was played."),
    "episode_return": (pa.float64(), "Sum of the episode's rewards, as the game gives them."),
    "length": (pa.int32(), "Steps of the episode."),
}

#: More episodes than a cell, and than a published dataset, has; a Parquet file of a few bytes can declare any number.
MOST_IN_CELL, MOST_IN_DATASET = 1_000_000, 10_000_000

#: The columns that say which cell a row belongs to, shared by both tables.
LABELS = ("game", "mode", "budget", "agent", "seed", "reference", "rule", "level_set", "draw")

#: One row per cell: its labels, then what was measured along the way. Entropies in nats.
CELL_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    **{name: EPISODE_COLUMNS[name] for name in LABELS},
    "n_steps": (pa.int64(), "Environment steps of the counted episodes."),
    "entropy_raw": (pa.float64(), "Entropy of the policy over raw actions, all counted steps, in nats."),
    "entropy_first1024": (
        pa.float64(),
        "The same on the first 1024 states in the order (index, step, slot).",
    ),
    "entropy_probe": (pa.float64(), "The same on the probe states."),
    "merged_state": (pa.float64(), "Entropy over each probe state's own classes of equal actions, in nats."),
    "merged_game": (pa.float64(), "Entropy over the game's classes of equal actions, in nats."),
    "mean_ln_k": (pa.float64(), "Mean over probe states of ln(number of classes)."),
    "k": (pa.int64(), "Number of the game's classes."),
    "disagreement": (
        pa.float64(),
        "Share of counted steps on which the rule chose a class other than that of plain argmax. Null for other rules "
        "than merged.",
    ),
    "entropy_played": (
        pa.float64(),
        "Entropy of the distribution that was drawn from, where the rule changes it.",
    ),
    "action_counts": (pa.list_(pa.int64()), "How often each action was taken."),
    "device": (pa.string(), "Where the network ran: cpu or cuda."),
    "backend": (
        pa.string(),
        "Name of the library that computed the logits; `host` where there is no network.",
    ),
    "repeats": (pa.int64(), "Episodes per level in a census; null for draws."),
    "policy": (pa.string(), "Hash of the policy's weights and of everything that changes its logits."),
    "key": (pa.string(), "The cell's content address: a hash of everything that can change an episode."),
}

EPISODES = pa.schema([(name, kind) for name, (kind, _) in EPISODE_COLUMNS.items()])
CELLS = pa.schema([(name, kind) for name, (kind, _) in CELL_COLUMNS.items()])


def rows_to_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of `schema`; what a row lacks is null."""
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def read_run_log(path: Path, columns: Mapping[str, pa.DataType]) -> pa.Table:
    """These columns of a run's training log, as these types: a log can come with somebody else's store.

    An ArrowException or OSError says that they are not there or are others.
    """
    table = pq.read_table(path, columns=list(columns), partitioning=None).select(list(columns))
    return table.cast(pa.schema(list(columns.items())))
