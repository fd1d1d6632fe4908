"""Work that is shared out: pieces that add up to the cells, as many workers as pay, the same bytes."""

import subprocess
import sys
from collections import Counter

import pytest

from folders import file_hashes
from gapfloor import evaluate
from gapfloor.calibration.probe import ProbeSettings
from gapfloor.engines.registry import make_spec
from gapfloor.errors import PolicyError
from gapfloor.levels.schedule import LevelSet
from gapfloor.machine import available_cores
from gapfloor.play.cell import CellSpec, Design, Run
from gapfloor.play.group import CellGroup
from gapfloor.play.workers import worthwhile_workers
from gapfloor.policies.load import PolicySource

AGENT = "agents/miner-easy-impala-100k-s1"


def group(rule, *, draws=3, episodes=128, probe=None, source=None):
    spec, levels, design = make_spec("starpilot"), LevelSet(0, 60), Design(episodes=episodes)
    cells = tuple(
        CellSpec(spec, Run("a"), "hash", rule, "test", levels, draw, design) for draw in range(draws)
    )
    return CellGroup(spec, cells, source or PolicySource("x"), probe)


@pytest.mark.parametrize("rule", ["sampled", "greedy"])
def test_the_pieces_of_a_group_are_its_episodes_each_once(rule):
    whole = group(rule)
    pieces = whole.pieces()
    found = Counter((cell.draw, position) for piece in pieces for cell, rows in piece for position in rows)
    assert len(pieces) > 2
    assert set(found.values()) == {1}
    assert len(found) == 3 * 128


def test_a_level_of_a_deterministic_rule_is_in_one_piece_only():
    homes = Counter(
        level
        for piece in group("greedy").pieces()
        for level in {int(cell.schedule().level_seed[row]) for cell, rows in piece for row in rows}
    )
    assert set(homes.values()) == {1}


def test_a_cell_that_is_observed_stays_whole():
    pieces = group("sampled", probe=ProbeSettings(states=8)).pieces()
    assert [[rows for _, rows in piece] for piece in pieces] == [[None]] * 3


def test_no_second_worker_starts_for_less_work_than_its_start():
    assert worthwhile_workers([group("sampled", draws=1, episodes=16)]) == 1
    assert worthwhile_workers([group("sampled", draws=3, episodes=1280)]) == available_cores()


def test_one_worker_or_two_give_the_same_bytes_of_sampled_greedy_and_observed_cells(tmp_path):
    few = {
        "game": "miner", "rules": "sampled,greedy", "episodes": 8, "slots": 4, "draws": (0, 1, 2), "train": "0:6",
        "test": "100:106", "probe": 4,
    }  # fmt: skip
    for workers in (1, 2):
        evaluate(AGENT, store=tmp_path / str(workers), workers=workers, **few)
    assert file_hashes(tmp_path / "1" / "cells") == file_hashes(tmp_path / "2" / "cells")


def test_what_fails_in_one_process_ends_all_with_its_message():
    def policy(observations):
        import multiprocessing
        import time

        import numpy as np

        if multiprocessing.parent_process() is not None:
            raise ValueError("only in a worker")
        time.sleep(0.05)  # until the worker has started
        return np.zeros((len(observations), 15), dtype=np.float32)

    with pytest.raises(PolicyError, match="only in a worker"):
        evaluate(policy, game="miner", rules="sampled", episodes=64, slots=16, draws=(0, 1), workers=2)


def test_the_process_that_plays_alone_loads_a_policy_once(tmp_path, monkeypatch):
    loaded, load = [], PolicySource.load
    monkeypatch.setattr(PolicySource, "load", lambda source: loaded.append(source.name) or load(source))
    few = {"episodes": 4, "slots": 4, "draws": 0, "train": "none", "test": "100:104"}
    evaluate(AGENT, game="miner", rules="sampled,greedy", store=tmp_path, workers=1, **few)
    assert loaded == [AGENT]


def test_a_limit_of_memory_that_is_too_small_is_one_sentence():
    command = f"ulimit -v 400000; exec {sys.executable} -m gapfloor.cli.main floor miner"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "limited to 0.4 GB (ulimit -v): gapfloor needs at least 0.6 GB" in done.stderr
