"""What fuzzing found: each input once ended in a traceback, and is now used or refused in a sentence."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.harness import lay_out, run_line, write_sound_folder, wrong_with
from fuzz.kinds import KINDS
from gapfloor.audit.ledger import SCHEMA as REGISTRY
from gapfloor.npy_bytes import read_npz
from gapfloor.records.stored_cell import content_key

DEEP = b"[" * 100_000
REPORT = "report store --out out --formats md,csv"
USED, CHECK_FAILED, REFUSED = 0, 1, 2


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "sound"
    write_sound_folder(folder)
    return folder


Outcome = Callable[..., int]


@pytest.fixture
def outcome(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """The exit code of a command (the first of its kind) that is given a file with other content."""

    def run(kind: str, change: bytes | Callable[[bytes], bytes], line: str = "") -> int:
        line = line or KINDS[kind].commands[0]
        lay_out(sound, line, tmp_path / "case")
        path = tmp_path / "case" / min(sound.glob(KINDS[kind].file)).relative_to(sound)
        path.write_bytes(change if isinstance(change, bytes) else change(path.read_bytes()))
        monkeypatch.chdir(tmp_path / "case")
        done = run_line(shlex.split(line))
        assert wrong_with(done) == ""
        return int(done.code)

    return run


def test_notes_in_a_log_that_make_no_sense_are_passed_over(outcome: Outcome) -> None:
    assert outcome("times", DEEP) == USED


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("registry", {"schema": REGISTRY}),
        ("registry", {"schema": REGISTRY, "entries": 1}),
        ("registry", {"schema": REGISTRY, "entries": [0.5]}),
        ("cka", {"game": "a", "agent": "b", "as_computed": "0.5"}),
    ],
)
def test_a_document_of_another_form_is_refused(outcome: Outcome, kind: str, document: Any) -> None:
    line = REPORT if kind == "cka" else ""
    assert outcome(kind, json.dumps(document).encode(), line) == REFUSED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("evidence", 1), ("evidence", [0.5]), ("evidence", [{}]), ("evidence", [{"odd": 1}]), ("name", {}), ("rule", 1),
        ("commit", None), ("in_loop", "no"), ("evaluates_heldout", [1]), ("notes", 2),
    ],
)  # fmt: skip
def test_odd_values_of_a_registry_are_refused(outcome: Outcome, field: str, value: Any) -> None:
    def change(content: bytes) -> bytes:
        document = json.loads(content)
        document["entries"][0][field] = value
        return json.dumps(document).encode()

    assert outcome("registry", change) == REFUSED


@pytest.mark.parametrize(("number", "code"), [("Infinity", USED), ("NaN", USED), ("1" + "0" * 400, REFUSED)])
def test_a_cka_that_is_not_finite_is_a_missing_one(outcome: Outcome, number: str, code: int) -> None:
    text = f'{{"game": "a", "agent": "b", "as_computed": {number}}}'
    assert outcome("cka", text.encode(), REPORT) == code


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1" + "0" * 400])
def test_a_number_of_rows_that_is_none_is_refused(outcome: Outcome, number: str) -> None:
    text = f'{{"game": "a", "agent": "b", "as_computed": 0.5, "n": {number}}}'
    assert outcome("cka", text.encode(), REPORT) == REFUSED


@pytest.mark.parametrize("line", [b'{"ga\xffme": 1}', b'{"game": "\xff"}'])
def test_json_lines_that_are_not_utf_8_are_refused(outcome: Outcome, line: bytes) -> None:
    assert outcome("json-lines", line + b"\n") == REFUSED


def test_an_infinite_number_of_levels_is_refused(outcome: Outcome) -> None:
    def change(content: bytes) -> bytes:
        text = re.sub(rb'("[a-z_]*": )[0-9.]+', rb"\1Infinity", content)
        assert text != content
        return text

    assert outcome("leakage", change, REPORT) == REFUSED


@pytest.mark.parametrize("field", ["text", "name", "cells_seen"])
def test_a_lock_with_a_value_of_another_type_is_refused_although_its_seal_fits(
    outcome: Outcome, field: str
) -> None:
    def change(content: bytes) -> bytes:
        document = json.loads(content)
        document.pop("seal")
        document["plan"][field] = [True]
        seal = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        return json.dumps({**document, "seal": seal}).encode()

    assert outcome("lock", change) == CHECK_FAILED


@pytest.mark.parametrize(("kind", "name"), [("lock", b'"locked_at"'), ("manifest", b'"agent"')])
def test_a_name_that_occurs_twice_is_not_passed_over(outcome: Outcome, kind: str, name: bytes) -> None:
    """The seal is about what Python reads, which is the last of two; a person or another reader sees the first."""
    line = "" if kind == "lock" else "verify store --episodes 0 --whole-cells 0"
    assert (
        outcome(kind, lambda content: content.replace(name, name + b': "x", ' + name, 1), line)
        == CHECK_FAILED
    )


@pytest.mark.parametrize("kind", ["evaluations", "matrices"])
def test_a_cut_or_crafted_npz_is_refused(outcome: Outcome, kind: str) -> None:
    assert outcome(kind, lambda content: content[:-40]) == REFUSED
    assert outcome(kind, lambda content: content.replace(b"'descr'", b"'descr(")) == REFUSED


def test_a_small_npz_that_unpacks_to_more_is_not_unpacked(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", results=np.zeros((1, 10_000_000)))
    assert (tmp_path / "bomb.npz").stat().st_size < 100_000
    with pytest.raises(ValueError, match="unpacks to more than 1,000,000 bytes"):
        read_npz(tmp_path / "bomb.npz", most_bytes=1_000_000)


@pytest.mark.parametrize("name", ["steps", "in_loop_return", "n_episodes", "entropy_nats"])
@pytest.mark.parametrize("values", [["a", "b"], [[1], [2]], [{"x": 1}, {"x": 2}], [None, None]])
def test_a_training_log_of_other_types_is_read_or_refused(outcome: Outcome, name: str, values: Any) -> None:
    def change(content: bytes) -> bytes:
        table = pq.read_table(pa.BufferReader(content))
        sink = pa.BufferOutputStream()
        pq.write_table(table.set_column(table.column_names.index(name), name, pa.array(values)), sink)
        return bytes(sink.getvalue())

    assert outcome("training-log", change, REPORT) in (USED, REFUSED)


@pytest.mark.parametrize("label", ["9" * 5000, "²", "٣", "007"])
def test_labels_that_look_like_numbers_are_sorted_without_being_converted(
    outcome: Outcome, label: str
) -> None:
    header = "game,mode,budget,agent,seed,rule,level_set,draw,episode_return\n"
    rows = "".join(f"{game},easy,8M,impala,1,greedy,test,0,1.0\n" for game in (label, "10", "coinrun"))
    assert outcome("csv", (header + rows).encode()) == USED


@pytest.mark.parametrize("line", KINDS["parquet"].commands)
def test_text_that_is_not_utf_8_is_refused_by_every_command(outcome: Outcome, line: str) -> None:
    def change(content: bytes) -> bytes:
        table = pq.read_table(pa.BufferReader(content))
        odd = pa.array([b"im\xffpala"] * table.num_rows, pa.binary()).view(pa.string())
        sink = pa.BufferOutputStream()
        pq.write_table(table.set_column(table.column_names.index("agent"), "agent", odd), sink)
        return bytes(sink.getvalue())

    assert outcome("parquet", change, line) == REFUSED


@pytest.mark.parametrize("number", ["inf", "1e400", "nan", "-1", "1.5", "9" * 400])
def test_a_number_of_runs_that_is_none_is_refused(outcome: Outcome, number: str) -> None:
    text = f"game,agent,mean,std,n\nheist,impala,1.5,0.3,{number}\nheist,random,3.1,0.2,8\n"
    assert outcome("means", text.encode()) == REFUSED


@pytest.mark.parametrize("length", [-1, 10**400, float("inf"), "x", None])
def test_a_replay_of_an_impossible_length_is_passed_over(outcome: Outcome, length: Any) -> None:
    def change(content: bytes) -> bytes:
        return json.dumps({**json.loads(content), "length": length}).encode()

    assert outcome("replay", change, "report store --out out --formats html") == USED


def test_half_a_character_in_a_label_makes_a_manifest_unreadable_not_a_traceback(outcome: Outcome) -> None:
    def change(content: bytes) -> bytes:
        document = json.loads(content)
        document.pop("sha256")
        document["labels"]["agent"] = "\ud800"
        return json.dumps({**document, "sha256": content_key(document)}).encode()

    assert outcome("manifest", change) in (USED, REFUSED)
