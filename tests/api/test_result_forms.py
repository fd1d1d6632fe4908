"""Results of public functions print themselves, show themselves in a notebook and become tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gapfloor
from command_line import run
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.records.verification import StoreVerification

pytestmark = pytest.mark.fast

VERIFIED = StoreVerification(
    cells=2, problems=(), episodes=32, replayable=32, replayed=4, replayed_cells=2, recomputed_cells=1,
    not_replayed=(), seed=1, version="1",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock counts the cells of a store in the working directory; there must be none."""
    monkeypatch.chdir(tmp_path)


def locked(folder: Path) -> Path:
    path = gapfloor.Plan.init(folder / "plan.toml")
    gapfloor.Plan.lock(path, cells_seen=0)
    return path


RESULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "audit_ledger": (lambda folder: gapfloor.audit.ledger(), "evaluate on held-out levels"),
    "audit_registry": (lambda folder: gapfloor.audit.ledger(registry=True), "| repository |"),
    "audit_verify": (lambda folder: gapfloor.audit.ledger(repos=folder), "no clone: "),
    "plan_check": (lambda folder: gapfloor.Plan.check(locked(folder)), "pre-registered"),
    "verify_store": (lambda folder: VERIFIED, "No problem was found"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_reads_as_text_html_json_and_a_table(name: str, tmp_path: Path) -> None:
    make, words = RESULTS[name]
    result = make(tmp_path)
    assert words in repr(result)
    assert words.replace("'", "&#x27;") in result._repr_html_()
    assert json.loads(json.dumps(result.to_dict()))
    assert len(result.to_pandas()) == result.to_arrow().num_rows > 0


def test_a_plan_is_written_locked_and_extended_as_by_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = locked(tmp_path)
    addendum = gapfloor.Plan.init(tmp_path / "merged.toml", addendum=True)
    found = gapfloor.Plan.lock(path, addendum=addendum, cells_seen=3)
    assert [text.status for text in (found.plan, *found.addenda)] == ["pre-registered", "pre-specified"]
    status, out, _ = run(capsys, "plan", "check", str(path), "--json")
    assert status == 0
    document = json.loads(out)
    assert {name: document[name] for name in ("plan", "addenda", "evidence")} == found.to_dict()


def test_a_plan_that_is_not_locked_or_exists_already_is_refused(tmp_path: Path) -> None:
    path = gapfloor.Plan.init(tmp_path / "plan.toml")
    with pytest.raises(CheckFailedError, match="is not locked"):
        gapfloor.Plan.check(path)
    with pytest.raises(UsageError, match="exists already"):
        gapfloor.Plan.init(path)
    with pytest.raises(UsageError, match="Give one of"):
        gapfloor.Plan.lock(path, cells_seen=0, store=tmp_path)
