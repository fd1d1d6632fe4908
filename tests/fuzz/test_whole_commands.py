"""Damaged inputs of every kind go through whole commands: no traceback, crash or hang, nothing run, nothing left.

A few cases of each kind run with every test run. The long run is `make fuzz`, with the number of cases per kind in
GAPFLOOR_FUZZ_CASES (1020: about 100,400 in all; kinds whose commands are slow get fewer), the first case in
GAPFLOOR_FUZZ_FIRST, and a file for what was found in GAPFLOOR_FUZZ_LOG.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fuzz.harness import write_sound_folder
from fuzz.kinds import KINDS

#: Cases of each kind in an ordinary test run.
FEW = 5

#: Cases of each kind that one process runs: a crash costs no more than the rest of them.
PER_PROCESS = 320


@pytest.fixture(scope="module")
def sound() -> Iterator[Path]:
    """In memory where that is possible: most of the time of a case is making and removing its folder."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    write_sound_folder(place / "sound")
    yield place / "sound"
    shutil.rmtree(place)


def run_cases(sound: Path, kinds: Sequence[str], first: int, cases: int) -> dict[str, Any]:
    """What one process found in these cases of each kind; a crash counts as a failure of the case that it was at."""
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), str(tests.parent / "src"), os.environ.get("PYTHONPATH", "")])
    script = Path(__file__).with_name("harness.py")
    command = [sys.executable, str(script), "--folder", str(sound), "--kinds", ",".join(kinds)]
    done = subprocess.run(
        [*command, "--first", str(first), "--cases", str(cases)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    current = sound.parent / "current.json"
    at = json.loads(current.read_text()) if current.exists() else {"kind": kinds[0], "number": None}
    wrong = f"the process ended with {done.returncode}: {done.stderr[-2000:]}"
    return {"codes": {}, "seconds": {}, "failures": [{**at, "wrong": wrong}]}


def test_a_damaged_input_is_used_or_refused_in_a_sentence(sound: Path) -> None:
    found = run_cases(sound, [*KINDS], 10**9, FEW)
    assert found["failures"] == []
    assert sum(found["codes"].values()) == sum(max(1, round(FEW * kind.share)) for kind in KINDS.values())


@pytest.mark.fuzz
def test_many_damaged_inputs_are_used_or_refused_in_a_sentence(sound: Path) -> None:
    cases = int(os.environ.get("GAPFLOOR_FUZZ_CASES", "1020"))
    start = int(os.environ.get("GAPFLOOR_FUZZ_FIRST", "0"))
    failures = []
    for first in range(start, start + cases, PER_PROCESS):
        found = run_cases(sound, [*KINDS], first, min(PER_PROCESS, start + cases - first))
        failures += found["failures"]
        with open(os.environ.get("GAPFLOOR_FUZZ_LOG", os.devnull), "a") as log:
            log.write(json.dumps({"first": first, **found}) + "\n")
    assert failures == []
