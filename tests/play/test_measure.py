"""`measure_floor` and `evaluate` on the real engine."""

import dataclasses
import json

import numpy as np
import pytest

import small_policies
from folders import file_hashes
from gapfloor import evaluate
from gapfloor.api.floor import floor as measure_floor
from gapfloor.errors import PolicyError, StoreError, UsageError
from gapfloor.play import group
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store

SMALL = {"episodes": 16, "slots": 8, "draws": (0,), "train": "0:20", "test": "100:120", "workers": 1}


def test_a_floor_has_one_row_per_level_set_and_prints_itself():
    floor = measure_floor("starpilot", **SMALL)
    assert [(row.level_set, row.n_episodes) for row in floor.floors] == [("train", 16), ("test", 16)]
    assert "starpilot" in repr(floor)
    assert "<table>" in floor._repr_html_()
    assert json.loads(json.dumps(floor.to_dict()))["floors"][0]["reference"] == "uniform"


def test_one_worker_or_two_give_the_same_bytes(tmp_path):
    for workers in (1, 2):
        measure_floor(
            ["starpilot", "bossfight"], store=tmp_path / str(workers), **{**SMALL, "workers": workers}
        )
    assert file_hashes(tmp_path / "1" / "cells") == file_hashes(tmp_path / "2" / "cells")


def test_the_same_call_again_plays_nothing(tmp_path):
    played = []

    class Listener:
        def start(self, cells):
            played.extend(cells)

        def episode(self, cell, episode_return): ...

        def cell(self, cell): ...

    for _ in range(2):
        measure_floor("starpilot", store=tmp_path, progress=Listener(), **SMALL)
    assert len(played) == 2


def test_a_damaged_cell_is_named_and_measured_again(tmp_path):
    measure_floor("starpilot", store=tmp_path, **SMALL)
    before = file_hashes(tmp_path / "cells")
    victim = next((tmp_path / "cells").glob("*test*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-100])
    again = measure_floor("starpilot", store=tmp_path, **SMALL)
    assert again.redone == (victim.stem,)
    assert file_hashes(tmp_path / "cells") == before


def test_evaluation_shows_train_test_gap_and_floor(tmp_path):
    result = evaluate(
        small_policies.linear(), game="starpilot", rules="sampled,greedy", store=tmp_path, **SMALL
    )
    document = json.loads(json.dumps(result.to_dict()))
    halves = {(row["rule"] or row["reference"], row["level_set"]): row["mean"] for row in document["returns"]}
    assert set(halves) == {
        (rule, role) for rule in ("uniform", "sampled", "greedy") for role in ("train", "test")
    }
    gaps = {row["rule"]: row for row in document["gaps"]}
    for rule in ("sampled", "greedy"):
        assert gaps[rule]["gap"] == pytest.approx(halves[rule, "train"] - halves[rule, "test"])
        assert gaps[rule]["floor_gap"] == pytest.approx(
            halves["uniform", "train"] - halves["uniform", "test"]
        )
    assert "not tested (1 run)" in repr(result)
    assert any("needs at least 3 runs" in note for note in result.notes)


def test_policy_and_floor_are_measured_on_the_same_levels(tmp_path):
    evaluate(small_policies.linear(), game="starpilot", rules="sampled", store=tmp_path, **SMALL)
    places = Store(tmp_path).episodes().group_by(["level_set", "draw", "slot", "index"])
    levels = places.aggregate([("level_seed", "count_distinct"), ("level_seed", "count")])
    assert set(levels.column("level_seed_count_distinct").to_pylist()) == {1}
    assert set(levels.column("level_seed_count").to_pylist()) == {2}


def test_three_runs_give_the_call_over_runs():
    policies = [small_policies.LinearPolicy(seed) for seed in range(3)]
    result = evaluate(policies, game="starpilot", rules="sampled", **{**SMALL, "episodes": 56})
    assert {row.n for row in (*result.floor_comparisons, *result.gaps)} == {3}
    assert "not tested" not in {row.call for row in result.floor_comparisons}


def test_copies_among_the_policies_are_refused(tmp_path):
    with pytest.raises(UsageError, match="exactly the same content"):
        evaluate(
            [small_policies.linear(), small_policies.linear()],
            game="starpilot",
            rules="greedy",
            store=tmp_path,
            **SMALL,
        )
    assert not (tmp_path / "cells").exists()


def test_a_copy_under_another_name_is_refused_by_the_store(tmp_path):
    evaluate(small_policies.linear(), game="starpilot", rules="greedy", store=tmp_path, seeds=[1], **SMALL)
    with pytest.raises(StoreError, match="copies of one checkpoint are one run"):
        evaluate(
            small_policies.linear(), game="starpilot", rules="greedy", store=tmp_path, seeds=[2], **SMALL
        )


def test_a_cell_made_under_another_specification_is_refused_not_reused(tmp_path):
    policy = small_policies.linear()
    policy.fingerprint = "mine"
    evaluate(policy, game="starpilot", rules="greedy", store=tmp_path, batch=8, **SMALL)
    with pytest.raises(StoreError, match="batch: 8 there, 16 here"):
        evaluate(policy, game="starpilot", rules="greedy", store=tmp_path, batch=16, **SMALL)


def test_a_floor_of_another_design_is_measured_again(tmp_path):
    measure_floor("starpilot", store=tmp_path, **SMALL)
    evaluate(
        small_policies.linear(), game="starpilot", rules="greedy", store=tmp_path, **{**SMALL, "slots": 4}
    )
    designs = {(cell.is_reference, cell.manifest.content["slots"]) for cell in Store(tmp_path).cells()}
    assert designs == {(True, 8), (True, 4), (False, 4)}


def test_logits_that_are_not_finite_leave_no_cell(tmp_path):
    policy = small_policies.nan_logits()
    with pytest.raises(PolicyError, match="not finite"):
        evaluate(policy, game="starpilot", rules="sampled", store=tmp_path, **SMALL)
    assert not list(tmp_path.glob("cells/*policy*"))


def test_a_policy_that_takes_one_action_everywhere_is_flagged():
    result = evaluate(
        small_policies.constant_logits(), game="starpilot", rules="sampled", agent="stuck", **SMALL
    )
    assert any("stuck seed 1 under sampled took one action" in note for note in result.notes)


def test_a_level_set_of_everything_is_said_to_be_disjoint_from_no_other():
    result = evaluate(small_policies.linear(), game="starpilot", rules="greedy", **{**SMALL, "test": "all"})
    assert any("no other level set is disjoint from it" in note for note in result.notes)


def test_companions_and_places_in_the_inference_batch_change_no_bit():
    """The network of the study at one thread and a fixed shape; on this rests that episodes are pure."""
    torch = pytest.importorskip("torch")
    from gapfloor.training.agent import make_agent

    agent = make_agent("impala", observation_shape=(64, 64, 3), n_actions=15, seed=0)
    rng = np.random.default_rng(0)
    frames = torch.from_numpy(rng.integers(0, 256, (32, 64, 64, 3), dtype=np.uint8))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            order = torch.from_numpy(rng.permutation(32))
            logits = agent(frames)[0]
            assert torch.equal(agent(frames[order])[0], logits[order])
            changed = frames.clone()
            changed[1:] = torch.from_numpy(rng.integers(0, 256, (31, 64, 64, 3), dtype=np.uint8))
            assert torch.equal(agent(changed)[0][0], logits[0])
    finally:
        torch.set_num_threads(threads)


def test_a_device_out_of_memory_is_one_sentence_and_leaves_no_cell(tmp_path):
    """Playing on with the CPU would file the cells of two devices under one key."""
    with pytest.raises(PolicyError, match=r"ran out of memory.*use a smaller --batch or --device cpu"):
        evaluate(
            "small_policies:crowded",
            game="starpilot",
            rules="sampled,greedy",
            device="cuda",
            store=tmp_path,
            **SMALL,
        )
    assert not list(tmp_path.glob("cells/*policy*"))


def test_a_policy_that_changes_during_the_evaluation_is_refused(tmp_path, monkeypatch):
    """Workers load the policy themselves: what they load must be what the cells were specified with."""
    versions = iter([small_policies.LinearPolicy(0), small_policies.LinearPolicy(1)])
    monkeypatch.setattr(small_policies, "changing", lambda: next(versions), raising=False)
    # As another process would: it has no policy yet, and loads the one that the group names.
    monkeypatch.setattr(PolicySource, "load", PolicySource._loaded.func)
    with_policy = group.with_policy
    monkeypatch.setattr(group, "with_policy", lambda one: with_policy(dataclasses.replace(one, policy=None)))
    with pytest.raises(PolicyError, match="has changed since this evaluation began"):
        evaluate("small_policies:changing", game="starpilot", rules="greedy", store=tmp_path, **SMALL)
    assert not list(tmp_path.glob("cells/*policy*"))


def test_progress_hears_of_every_counted_episode_also_of_copied_ones(tmp_path):
    heard = []

    class Listener:
        def start(self, cells): ...

        def episode(self, cell, episode_return):
            heard.append((cell.rule, episode_return))

        def cell(self, cell): ...

    settings = {**SMALL, "draws": (0, 1)}
    result = evaluate(
        small_policies.linear(),
        game="starpilot",
        rules="greedy",
        store=tmp_path,
        progress=Listener(),
        **settings,
    )
    greedy = [value for rule, value in heard if rule == "greedy"]
    assert len(greedy) == 64
    means = [row.mean for row in result.cells if row.rule == "greedy"]
    assert np.mean(greedy) == pytest.approx(np.mean(means))
