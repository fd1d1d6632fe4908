"""A stored cell: its episodes as Parquet, its signed manifest, and the columns of both (contract 6 of the design).

The manifest holds the cell's specification, its record and the hash of its episode file. It is written after the
episodes, so a cell exists exactly when its manifest does; it carries a hash of itself, so that a changed or cut file is
noticed, and its key must be the hash of its specification.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gapfloor.errors import StoreError
from gapfloor.json_values import DAMAGED, without_repetition

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

#: The columns of both tables that name the cell of a row.
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

#: Of the file of a manifest.
FORMAT = 1
_SURROGATE = re.compile("[\ud800-\udfff]")

EPISODES = pa.schema([(name, kind) for name, (kind, _) in EPISODE_COLUMNS.items()])
CELLS = pa.schema([(name, kind) for name, (kind, _) in CELL_COLUMNS.items()])


def read_run_log(path: Path, columns: Mapping[str, pa.DataType]) -> pa.Table:
    """These columns of a run's training log, as these types: a log can come with somebody else's store.

    An ArrowException or OSError says that they are not there or are others.
    """
    table = pq.read_table(path, columns=list(columns), partitioning=None).select(list(columns))
    return table.cast(pa.schema(list(columns.items())))


@dataclass(frozen=True)
class Manifest:
    """What is known about a stored cell."""

    key: str
    content: dict[str, Any]
    """Everything that the key is made of."""
    labels: dict[str, Any]
    record: dict[str, Any]
    episodes_sha256: str

    def to_bytes(self) -> bytes:
        """The manifest's file."""
        body = {"format": FORMAT, **vars(self)}
        signed = {**body, "sha256": content_key(body)}
        return (json.dumps(signed, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


class ManifestError(ValueError):
    """A manifest or its episodes are cut, altered or of another format; the text says how, in words."""


def parse_manifest(path: Path) -> Manifest:
    """The manifest in `path`, whose hash and key must belong to its content; otherwise a `ManifestError`."""
    # A pipe or a folder with a cell's name is not a cell, and reading a pipe would wait for ever.
    return parse_manifest_bytes(path.read_bytes() if path.is_file() else b"")


def parse_manifest_bytes(data: bytes) -> Manifest:
    """The manifest in the bytes of its file, checked as `parse_manifest` does."""
    try:
        signed: Any = json.loads(data, object_pairs_hook=without_repetition)
        claimed = signed.pop("sha256")
        if signed.get("format") != FORMAT or claimed != content_key(signed):
            raise ManifestError("the manifest is not what was hashed when it was written")
        if signed["key"] != content_key(signed["content"]):
            raise ManifestError("the key is not the hash of the specification")
        manifest = Manifest(**{field.name: signed[field.name] for field in fields(Manifest)})
        if not is_well_formed(manifest):
            raise ManifestError("the manifest holds values that gapfloor does not write")
        return manifest
    except ManifestError:
        raise
    except DAMAGED:
        raise ManifestError("the manifest cannot be read") from None


def is_well_formed(manifest: Manifest) -> bool:
    """Whether labels, specification and record have the form in which they are written: readers rely on it."""
    content, labels, record = manifest.content, manifest.labels, manifest.record
    if set(labels) != set(LABELS) or not isinstance(content.get("policy"), str):
        return False
    for name, value in labels.items():
        is_number = isinstance(value, int) and _is_plain(value)
        is_right = is_number if name in ("seed", "draw") else is_writable_text(value)
        if not (is_right or (name == "seed" and value is None)):
            return False
    plain = {name: value for name, value in content.items() if name not in ("options", "classes")}
    values = [*plain.values(), *content.get("options", {}).values(), *content.get("classes", ())]
    return all(map(_is_plain, values)) and all(map(_is_recorded, record.values()))


def _is_recorded(value: Any) -> bool:
    """Whether a record can hold a value: counts of several dimensions are lists of lists."""
    return all(map(_is_recorded, value)) if isinstance(value, list) else _is_plain(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or isinstance(value, float) or is_writable_text(value)


def is_writable_text(value: Any) -> bool:
    """Whether a value is text that can be written: JSON and paths can hold halves of characters (surrogates)."""
    return isinstance(value, str) and (value.isascii() or _SURROGATE.search(value) is None)


def content_key(content: Any) -> str:
    """The hash by which plain JSON values are told apart; a cell's key is that of its specification."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """The one way in which a value is written where bytes must be equal."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class StoredCell:
    """A cell that is whole: its manifest has been checked."""

    path: Path
    """The episode file."""
    manifest: Manifest

    @property
    def is_reference(self) -> bool:
        """Whether the cell is a reference's, not a run's."""
        return bool(self.manifest.labels["reference"])


def episode_bytes(table: pa.Table) -> bytes:
    """A cell's episodes as its file holds them."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def episode_table(cells: Iterable[StoredCell], *, columns: Sequence[str] = EPISODES.names) -> pa.Table:
    """The episodes of these cells, or some columns of them, as one table."""
    tables = [read_episodes(cell.path, columns=columns) for cell in cells]
    return pa.concat_tables(tables) if tables else EPISODES.empty_table()


def cell_table(cells: Iterable[StoredCell]) -> pa.Table:
    """One row per cell: its labels and its record."""
    rows = [
        {**cell.manifest.labels, **cell.manifest.record, "policy": cell.manifest.content["policy"],
         "repeats": cell.manifest.content.get("repeats"), "key": cell.manifest.key}
        for cell in cells
    ]  # fmt: skip
    try:
        columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in CELLS]
        return pa.Table.from_arrays(columns, schema=CELLS)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise StoreError(
            f"The record of a cell holds a value of the wrong kind ({error}): gapfloor verify names what is wrong."
        ) from error


def read_episodes(path: Path, *, columns: Sequence[str] = EPISODES.names) -> pa.Table:
    """The episodes of one cell, or some columns of them; a file that cannot be read is named."""
    schema = pa.schema([EPISODES.field(name) for name in columns])
    try:
        # Several times faster for a small file than `pq.read_table`, which looks for a dataset; and a path would be
        # looked up among file systems.
        data = pa.BufferReader(path.read_bytes())
        with pq.ParquetFile(data, page_checksum_verification=True) as file:
            if file.metadata.num_rows > MOST_IN_CELL:
                raise ValueError(f"{file.metadata.num_rows:,} episodes in one cell")
            table = file.read(columns=schema.names, use_threads=False)
            return table if table.schema.equals(schema) else table.cast(schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(
            f"{path} cannot be read ({error}): delete it and run the same command again."
        ) from error
