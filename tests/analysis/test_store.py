"""The cells of a store are analysed, including their entropies."""

from __future__ import annotations

import numpy as np
import pytest

import gapfloor
from gapfloor.analysis.apply import analyse
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.results import read_stored_results, results_digest
from gapfloor.api.plan_files import count_cells
from gapfloor.errors import CheckFailedError
from gapfloor.plan.lock import lock_plan
from gapfloor.plan.model import builtin_text
from gapfloor.records.store import Store
from small_stores import write_cell

pytestmark = pytest.mark.fast

N = 8


def write(
    store: Store, *, rule: str, level_set: str, draw: int, seed: int | None, reference: str = ""
) -> None:
    labels = {
        "game": "heist", "budget": "" if reference else "8M", "agent": "" if reference else "a", "seed": seed,
        "reference": reference, "rule": rule, "level_set": level_set, "draw": draw,
    }  # fmt: skip
    rng = np.random.default_rng([len(rule), len(level_set), draw, seed or 0])
    first = 0 if level_set == "train" else 1000
    columns = {
        "slot": np.arange(N) % 4,
        "index": np.arange(N) // 4,
        "level_seed": first + np.random.default_rng(draw).integers(0, 5, N),
        "episode_return": 10.0 * rng.integers(0, 2, N),
        "length": np.full(N, 20),
    }
    record = {} if reference else {
        "n_steps": 160, "entropy_raw": 2.4, "entropy_first1024": 2.2, "entropy_probe": 2.5, "merged_state": 1.5,
        "merged_game": 1.6, "mean_ln_k": 2.0, "k": 9, "action_counts": [10] * 15, "disagreement": 0.25,
    }  # fmt: skip
    name = f"{rule}-{level_set}-{draw}-{seed}"
    content = {"policy": f"p{seed}", "slots": 4, "episodes": N, "levels": level_set}
    write_cell(store, name, content=content, columns=columns, record=record, **labels)


@pytest.fixture
def store(empty_store):
    store = empty_store
    for level_set in ("train", "test"):
        for draw in (0, 1):
            write(store, rule="uniform", level_set=level_set, draw=draw, seed=None, reference="uniform")
            for rule in ("sampled", "greedy", "merged"):
                for seed in (1, 2, 3):
                    write(store, rule=rule, level_set=level_set, draw=draw, seed=seed)
    return store


@pytest.mark.parametrize("as_object", [True, False])
def test_a_store_keeps_the_results_for_the_report(store, as_object):
    results = gapfloor.analyse(store if as_object else str(store.root))
    kept = read_stored_results(store.root, digest=results_digest(read_inputs(store.root)))
    assert repr(kept) == repr(results)


def test_a_store_that_cannot_be_written_to_is_analysed(store):
    (store.root / "results").write_text("a file where the folder would be")
    assert gapfloor.analyse(store.root).floor_comparisons


def test_a_store_is_analysed_with_its_screen(store):
    results = analyse(store.root)
    assert {(row.rule, row.level_set, row.n) for row in results.floor_comparisons} == {
        (rule, level_set, 3) for rule in ("sampled", "greedy", "merged") for level_set in ("train", "test")
    }
    (screen,) = results.screen
    assert (screen.entropy, screen.k, screen.tier) == (pytest.approx(2.4), 9, "high")
    assert screen.share == pytest.approx(0.4)
    assert {row.share for row in results.disagreements} == {0.25}
    assert results.source.has_cell_records
    assert count_cells(store.root) == 4 + 36


def test_a_damaged_cell_counts_as_missing_and_is_named(store):
    (store.cells_folder / "greedy-test-1-2.parquet").write_bytes(b"cut")
    problems = [(p.kind, p.where) for p in analyse(store.root).problems]
    assert ("missing", "cell greedy-test-1-2") in problems
    assert ("missing", "heist, 8M, a seed 2, greedy, test, draw 1") in problems


def test_a_failed_replay_stops_a_locked_plan(store, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(builtin_text("paper"))
    lock_plan(plan, cells_seen=0, seen_in="declared")
    analyse(store.root, plan)
    (store.root / "replays").mkdir()
    (store.root / "replays" / "greedy-test-1-2-0-0.failed").write_text("10.0 recorded, 0.0 played")
    with pytest.raises(CheckFailedError, match="replay does not give the recorded return"):
        analyse(store.root, plan)
    assert [p.kind for p in analyse(store.root).problems] == ["replay"]
