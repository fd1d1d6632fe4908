"""Damage that gets past a hash or a reader of columns: tables with odd columns, and files whose seal is made again."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.mutations import mutant, mutate_json, mutate_safetensors
from gapfloor.records.stored_cell import content_key
from gapfloor.training.checkpoint import hash_header

#: Settings of git that start a program when a command of git believes them.
_GIT_SETTINGS = (
    '[core]\nfsmonitor = "touch CANARY"\n', '[core]\nsshCommand = "touch CANARY"\n', "[core]\nbare = maybe\n",
    '[diff]\nexternal = "touch CANARY"\n', '[pager]\nlog = "touch CANARY"\n', "[include]\npath = /dev/zero\n",
    '[filter "x"]\nsmudge = "touch CANARY"\n', "[extensions]\nrepositoryformatversion = 99\n", "[core]\nworktree = /\n",
    '[core]\nhooksPath = "."\n', '[remote "origin"]\npromisor = true\nurl = "ext::touch CANARY"\n',
)  # fmt: skip


def change_config(content: bytes, number: int) -> bytes:
    """The settings of a repository with hostile ones after them."""
    rng = random.Random(number)
    return mutant(content, number) if rng.random() < 0.3 else content + rng.choice(_GIT_SETTINGS).encode()


def forge_table(content: bytes, number: int) -> bytes:
    """A Parquet file with a column of another type, with odd values, under another name, or missing."""
    rng = random.Random(number)
    if rng.random() < 0.3:
        return mutant(content, number)
    table = pq.read_table(pa.BufferReader(content))
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(table.num_columns)
        name = rng.choice((table.column_names[at],) * 4 + ("", "\x1b[2J", "mean", table.column_names[0]))
        made = _odd_column(table.num_rows, rng)
        table = table.remove_column(at) if made is None else table.set_column(at, name, made)
    if rng.random() < 0.1:
        table = table.slice(0, rng.randrange(3))
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(table, sink, row_group_size=rng.choice((1, 7, 1000)))
    except pa.ArrowException:  # not every type can be written
        return mutant(content, number)
    return bytes(sink.getvalue())


def _odd_column(n: int, rng: random.Random) -> Any:
    texts = ("a", "", None, "x" * 500, "\x1b]0;x\x07", "=1+1", "٣", "9" * 400, "impala", "uniform")
    made = {
        "missing": lambda: None,
        "half": lambda: pa.array([rng.choice((0.0, float("inf"), -1.0)) for _ in range(n)]).cast(pa.float16()),
        "list": lambda: pa.array([[1, 2]] * n),
        "text": lambda: pa.array([rng.choice(texts) for _ in range(n)]),
        "coded": lambda: pa.array([rng.choice(texts) for _ in range(n)]).dictionary_encode(),
        "long": lambda: pa.array([rng.choice(texts) for _ in range(n)], pa.large_string()),
        "bytes": lambda: pa.array([rng.randbytes(4) for _ in range(n)], pa.binary()),
        "not UTF-8": lambda: _not_utf_8(n, rng),
        "coded bytes": lambda: pa.array([rng.randbytes(2) for _ in range(n)], pa.binary()).dictionary_encode(),
        "null": lambda: pa.nulls(n),
        "decimal": lambda: pa.array([rng.randrange(10**9) for _ in range(n)]).cast(pa.decimal128(20, 0)),
        "bool": lambda: pa.array([rng.random() < 0.5 for _ in range(n)]),
        "struct": lambda: pa.array([{"a": 1}] * n),
        "time": lambda: pa.array([rng.randrange(2**40) for _ in range(n)]).cast(pa.timestamp("ms")),
        "large": lambda: pa.array([rng.choice((2**63, 2**64 - 1, 0)) for _ in range(n)], pa.uint64()),
        "number": lambda: pa.array([rng.choice((1e308, -1e308, 1e200, 1e-310, 0.1, float("nan"))) for _ in range(n)]),
    }  # fmt: skip
    return made[rng.choice(list(made))]()


def _not_utf_8(n: int, rng: random.Random) -> Any:
    """A column that says it is text in UTF-8 and is not."""
    made = pa.array(
        [rng.choice((b"im\xffpala", b"a", b"\xed\xa0\x80", b"\xc3")) for _ in range(n)], pa.binary()
    )
    return pa.Array.from_buffers(pa.string(), n, made.buffers())


def forge_manifest(content: bytes, number: int) -> bytes:
    """A cell's manifest with other values, hashed again as a forger would."""
    document = _finite(json.loads(mutate_json(content, random.Random(number))))
    if isinstance(document.get("content"), dict):
        document["key"] = content_key(document["content"])
    document.pop("sha256", None)
    return json.dumps({**document, "sha256": content_key(document)}).encode()


def _finite(value: Any) -> Any:
    """Numbers that JSON has: a manifest with others cannot be hashed."""
    if isinstance(value, float):
        return value if value - value == 0 else 0.0
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def seal_checkpoint(content: bytes, number: int) -> bytes:
    """A checkpoint with another header, whose hash was made again."""
    damaged = mutate_safetensors(content, random.Random(number))
    length = int.from_bytes(damaged[:8], "little")
    header = json.loads(damaged[8 : 8 + length])
    try:
        own = json.loads(header["__metadata__"]["gapfloor"])
        sealed = {**own, "header_hash": hash_header(own)}
    except (ValueError, KeyError, TypeError):
        return damaged
    header["__metadata__"]["gapfloor"] = json.dumps(sealed)
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + damaged[8 + length :]


def seal_lock(content: bytes, number: int) -> bytes:
    """A lock with other values, whose seal was made again."""
    document = json.loads(mutate_json(content, random.Random(number)))
    document.pop("seal", None)
    seal = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return json.dumps({**document, "seal": seal}).encode()
