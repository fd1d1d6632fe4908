"""Damaged policy files load or are refused in a sentence: no traceback, no crash, no hang, nothing run or written.

A few cases of each kind run with every test run. The long run is `pytest -m fuzz` (or `make fuzz`), with the number of
cases per kind in GAPFLOOR_FUZZ_CASES and the first case in GAPFLOOR_FUZZ_FIRST.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzz.policy_files import KINDS, MOST_SECONDS
from fuzz.sound_files import write_sound_files

#: Cases of each kind in an ordinary test run.
FEW = 25

#: Cases that one process loads: a crash costs no more than the rest of them.
PER_PROCESS = 500


@pytest.fixture(scope="module")
def sound_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    write_sound_files(folder)
    return folder


def load_damaged(folder: Path, kind: str, first: int, cases: int) -> dict[str, Any]:
    """What one process found in these cases; a crash counts as a failure of the case that it was at."""
    tests = Path(__file__).parents[1]
    source = tests.parent / "src"
    paths = os.pathsep.join([str(tests), str(source), os.environ.get("PYTHONPATH", "")])
    script = Path(__file__).with_name("policy_files.py")
    command = [sys.executable, str(script), "--folder", str(folder), "--kind", kind]
    done = subprocess.run(
        [*command, "--first", str(first), "--cases", str(cases)],
        capture_output=True,
        text=True,
        timeout=cases * MOST_SECONDS + 120,
        env={**os.environ, "PYTHONPATH": paths},
    )
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    current = folder / f"{kind}-{first}" / "current.json"
    at = json.loads(current.read_text()) if current.exists() else {"kind": kind, "number": None}
    failure = {**at, "error": f"the process ended with {done.returncode}", "text": done.stderr[-2000:]}
    return {"counts": {}, "failures": [failure], "watched": [], "written": []}


def assert_nothing_went_wrong(found: dict[str, Any]) -> None:
    assert found["failures"] == []
    assert found["watched"] == []
    assert found["written"] == []


@pytest.mark.parametrize("kind", [*KINDS])
def test_a_damaged_file_loads_or_is_refused(kind: str, sound_files: Path) -> None:
    found = load_damaged(sound_files, kind, 10**9, FEW)
    assert_nothing_went_wrong(found)
    assert sum(found["counts"].values()) == FEW


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", [*KINDS])
def test_many_damaged_files_load_or_are_refused(kind: str, sound_files: Path) -> None:
    cases = int(os.environ.get("GAPFLOOR_FUZZ_CASES", "1000"))
    start = int(os.environ.get("GAPFLOOR_FUZZ_FIRST", "0"))
    wrong: list[Any] = []
    for first in range(start, start + cases, PER_PROCESS):
        found = load_damaged(sound_files, kind, first, min(PER_PROCESS, start + cases - first))
        wrong += [*found["failures"], *found["watched"], *found["written"]]
    assert wrong == []
