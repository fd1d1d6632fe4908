"""Damaged files of every kind are read or refused in a sentence: no traceback, crash or hang, nothing run or written.

A few cases of each kind run with every test run. The long run is `pytest -m fuzz` (or `make fuzz`), with the number of
cases per kind in GAPFLOOR_FUZZ_CASES and the first case in GAPFLOOR_FUZZ_FIRST.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fuzz.damaged_files import FILE_KINDS, MOST_SECONDS, POLICY_KINDS
from fuzz.sound_files import write_every_kind

#: Cases of each kind in an ordinary test run.
FEW = 25

#: Cases that one process loads: a crash costs no more than the rest of them.
PER_PROCESS = 2000


@pytest.fixture(scope="module")
def sound_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    write_every_kind(folder)
    return folder


def read_damaged_files(folder: Path, kinds: Sequence[str], first: int, cases: int) -> dict[str, Any]:
    """What one process found in these cases of each kind; a crash counts as a failure of the case that it was at."""
    tests = Path(__file__).parents[1]
    source = tests.parent / "src"
    paths = os.pathsep.join([str(tests), str(source), os.environ.get("PYTHONPATH", "")])
    script = Path(__file__).with_name("damaged_files.py")
    command = [sys.executable, str(script), "--folder", str(folder), "--kinds", ",".join(kinds)]
    done = subprocess.run(
        [*command, "--first", str(first), "--cases", str(cases)],
        capture_output=True,
        text=True,
        timeout=len(kinds) * cases * MOST_SECONDS + 120,
        env={**os.environ, "PYTHONPATH": paths},
    )
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    current = folder / f"current-{first}.json"
    at = json.loads(current.read_text()) if current.exists() else {"kind": kinds[0], "number": None}
    failure = {**at, "error": f"the process ended with {done.returncode}", "text": done.stderr[-2000:]}
    return {"counts": {}, "failures": [failure], "watched": [], "written": []}


def assert_nothing_went_wrong(found: dict[str, Any]) -> None:
    assert found["failures"] == []
    assert found["watched"] == []
    assert found["written"] == []


@pytest.mark.parametrize("kinds", [[*POLICY_KINDS], [*FILE_KINDS]], ids=["policies", "inputs"])
def test_a_damaged_file_is_read_or_is_refused(kinds: list[str], sound_files: Path) -> None:
    found = read_damaged_files(sound_files, kinds, 10**9, FEW)
    assert_nothing_went_wrong(found)
    assert sum(found["counts"].values()) == FEW * len(kinds)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", [*POLICY_KINDS, *FILE_KINDS])
def test_many_damaged_files_are_read_or_are_refused(kind: str, sound_files: Path) -> None:
    cases = int(os.environ.get("GAPFLOOR_FUZZ_CASES", "1000"))
    start = int(os.environ.get("GAPFLOOR_FUZZ_FIRST", "0"))
    wrong: list[Any] = []
    for first in range(start, start + cases, PER_PROCESS):
        found = read_damaged_files(sound_files, [kind], first, min(PER_PROCESS, start + cases - first))
        wrong += [*found["failures"], *found["watched"], *found["written"]]
    assert wrong == []
