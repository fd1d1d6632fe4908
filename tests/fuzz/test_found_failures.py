"""What fuzzing found: each file once ended in a traceback, and is now read around or refused in a sentence."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.damaged_files import FILE_KINDS, run_case
from fuzz.input_files import write_sound_inputs
from fuzz.side_files import write_side_files
from gapfloor.audit.judgement.findings import SCHEMA as BASELINE
from gapfloor.audit.ledger.registry import SCHEMA as REGISTRY
from gapfloor.npy_bytes import read_npz
from gapfloor.records.manifest import content_key

ROOT = Path(__file__).parents[2]
CHECKPOINT = next((ROOT / "agents").rglob("checkpoint.safetensors"))
DEEP = b"[" * 100_000


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    write_sound_inputs(tmp_path / "inputs")
    write_side_files(tmp_path / "inputs", CHECKPOINT)
    return tmp_path / "inputs"


def outcome(inputs: Path, kind: str, content: bytes) -> str:
    """What becomes of a file of this kind with this content."""
    path = inputs / FILE_KINDS[kind].file
    path.write_bytes(content)
    return run_case(FILE_KINDS[kind].read, path)


def signed_index(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("index", signed_index(b'{"cell": 1}')),
        ("index", signed_index(b'{"cell": {"files": []}}')),
        ("index", signed_index(b'{"cell": {"files": [], "manifest": 0}}')),
        ("index", signed_index(DEEP)),
        ("times", DEEP),
        ("hosts", DEEP),
    ],
)
def test_notes_in_a_log_that_make_no_sense_are_passed_over(inputs: Path, kind: str, content: bytes) -> None:
    assert outcome(inputs, kind, content) == "loaded"


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("baseline", {"schema": BASELINE}),
        ("baseline", {"schema": BASELINE, "accepted": 1}),
        ("baseline", {"schema": BASELINE, "accepted": [{}]}),
        ("registry", {"schema": REGISTRY}),
        ("registry", {"schema": REGISTRY, "entries": 1}),
        ("registry", {"schema": REGISTRY, "entries": [0.5]}),
        ("cka", {"game": "a", "agent": "b", "as_computed": "0.5"}),
    ],
)
def test_a_document_of_another_form_is_refused(inputs: Path, kind: str, document: Any) -> None:
    assert outcome(inputs, kind, json.dumps(document).encode()) == "refused"


@pytest.mark.parametrize("evidence", [1, [0.5], [{}], [{"odd": 1}]])
def test_odd_evidence_of_a_registry_is_refused(inputs: Path, evidence: Any) -> None:
    document = json.loads((inputs / "registry.json").read_text())
    document["entries"][0]["evidence"] = evidence
    assert outcome(inputs, "registry", json.dumps(document).encode()) == "refused"


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1" + "0" * 400])
def test_numbers_of_cka_that_are_not_finite_are_missing_ones(inputs: Path, number: str) -> None:
    text = f'{{"game": "a", "agent": "b", "as_computed": {number}, "n": {number}}}'
    assert outcome(inputs, "cka", text.encode()) == "loaded"


@pytest.mark.parametrize("line", [b'{"ga\xffme": 1}', b'{"game": "\xff"}'])
def test_json_lines_that_are_not_utf_8_are_refused(inputs: Path, line: bytes) -> None:
    assert outcome(inputs, "json-lines", line + b"\n") == "refused"


def test_an_infinite_number_of_levels_is_refused(inputs: Path) -> None:
    text = re.sub(r'("[a-z_]*": )[0-9.]+', r"\1Infinity", (inputs / "leakage.json").read_text())
    assert "Infinity" in text
    assert outcome(inputs, "leakage", text.encode()) == "refused"


@pytest.mark.parametrize("field", ["text", "name", "cells_seen"])
def test_a_lock_with_a_value_of_another_type_is_refused_although_its_seal_fits(
    inputs: Path, field: str
) -> None:
    document = json.loads((inputs / "plan.lock").read_text())
    document.pop("seal")
    document["plan"][field] = [True]
    seal = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    assert outcome(inputs, "lock", json.dumps({**document, "seal": seal}).encode()) == "refused"


@pytest.mark.parametrize("kind", ["evaluations", "matrices"])
def test_a_cut_or_crafted_npz_is_refused(inputs: Path, kind: str) -> None:
    sound = (inputs / FILE_KINDS[kind].file).read_bytes()
    assert outcome(inputs, kind, sound[:-40]) == "refused"
    assert outcome(inputs, kind, sound.replace(b"'descr'", b"'descr(")) == "refused"


def test_a_small_npz_that_unpacks_to_more_is_not_unpacked(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", results=np.zeros((1, 10_000_000)))
    assert (tmp_path / "bomb.npz").stat().st_size < 100_000
    with pytest.raises(ValueError, match="unpacks to more than 1,000,000 bytes"):
        read_npz(tmp_path / "bomb.npz", most_bytes=1_000_000)


@pytest.mark.parametrize("name", ["steps", "in_loop_return", "n_episodes", "entropy_nats"])
@pytest.mark.parametrize("values", [["a", "b"], [[1], [2]], [{"x": 1}, {"x": 2}], [None, None]])
def test_a_training_log_of_other_types_is_read_or_refused(inputs: Path, name: str, values: Any) -> None:
    path = inputs / FILE_KINDS["training-log"].file
    table = pq.read_table(path)
    at = table.column_names.index(name)
    pq.write_table(table.set_column(at, name, pa.array(values)), path)
    assert run_case(FILE_KINDS["training-log"].read, path) in ("loaded", "refused")


@pytest.mark.parametrize("label", ["9" * 5000, "²", "٣", "007"])
def test_labels_that_look_like_numbers_are_sorted_without_being_converted(inputs: Path, label: str) -> None:
    header = "game,mode,budget,agent,seed,rule,level_set,draw,episode_return\n"
    rows = "".join(f"{game},easy,8M,impala,1,greedy,test,0,1.0\n" for game in (label, "10", "coinrun"))
    assert outcome(inputs, "csv", (header + rows).encode()) == "loaded"


def test_half_a_character_in_a_label_makes_a_manifest_unreadable_not_a_traceback(inputs: Path) -> None:
    path = inputs / FILE_KINDS["manifest"].file
    document = json.loads(path.read_text())
    document.pop("sha256")
    document["labels"]["agent"] = "\ud800"
    signed = {**document, "sha256": content_key(document)}
    assert outcome(inputs, "manifest", json.dumps(signed).encode()) == "loaded"
