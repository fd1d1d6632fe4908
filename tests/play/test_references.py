"""References stricter than the floor, on the real engine and with real networks."""

import numpy as np
import pytest

import small_policies
from gapfloor import evaluate
from gapfloor.analysis.apply import analyse
from gapfloor.api.floor import floor as measure_floor
from gapfloor.errors import PolicyError, StoreError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.records.store import Store
from gapfloor.training.spec import Hyperparameters, TrainingSpec
from gapfloor.training.trainer import train

SMALL = {"design": "census", "train": "0:4", "test": "100:103", "workers": 1}


@pytest.fixture(scope="module")
def blind_run(tmp_path_factory):
    spec = TrainingSpec(
        game="starpilot", encoder="impoola", seed=3, steps=256, levels=LevelSet(0, 4), is_blind=True,
        hyperparameters=Hyperparameters(environments=4, rollout_length=64),
    )  # fmt: skip
    return train(spec, store=tmp_path_factory.mktemp("blind")).checkpoint


def means(store, reference, level_set):
    rows = Store(store).episodes().to_pylist()
    found = [r["episode_return"] for r in rows if (r["reference"], r["level_set"]) == (reference, level_set)]
    return float(np.mean(found))


def test_the_best_constant_action_is_chosen_on_training_levels_and_reported_on_both(tmp_path):
    floor = measure_floor("bigfish", references="best-constant", store=tmp_path, **SMALL)
    assert [(row.reference, row.level_set) for row in floor.floors] == [
        ("best-constant", "train"),
        ("best-constant", "test"),
    ]
    of_each = [means(tmp_path, f"constant:{action}", "train") for action in range(15)]
    assert floor.floors[0].mean == max(of_each)
    assert len(set(of_each)) > 1
    assert floor.floors[0].sem == 0.0


def test_untrained_networks_are_shown_with_the_floor_and_their_spread(tmp_path):
    result = evaluate(
        small_policies.linear(), game="starpilot", rules="sampled", store=tmp_path,
        references=["random-weights:impoola:2", "sticky:0.5"], **SMALL,
    )  # fmt: skip
    networks = [row for row in result.returns if row.reference == "random-weights:impoola"]
    assert [(row.n_networks, row.n_episodes) for row in networks] == [(2, 8), (2, 6)]
    rows = Store(tmp_path).episodes().to_pylist()
    of_each = [
        np.mean(
            [
                r["episode_return"]
                for r in rows
                if r["seed"] == seed and r["reference"] and r["level_set"] == "test"
            ]
        )
        for seed in (1, 2)
    ]
    assert networks[1].sem == pytest.approx(abs(of_each[0] - of_each[1]) / 2)
    names = {row.reference for row in analyse(tmp_path).reference_comparisons}
    assert names == {"random-weights:impoola", "sticky:0.5"}
    assert {row.reference for row in analyse(tmp_path).floor_comparisons} == {"uniform"}


def test_a_blind_agent_acts_the_same_whatever_it_is_shown(blind_run, tmp_path):
    from gapfloor.policies.checkpoint import load_network

    policy = load_network(blind_run, backend="torch")
    frames = np.random.default_rng(0).integers(0, 255, (3, 64, 64, 3), dtype=np.uint8)
    assert (policy.logits(frames) == policy.logits(np.zeros_like(frames))).all()
    result = evaluate(
        small_policies.linear(), game="starpilot", rules="sampled", store=tmp_path,
        references=[f"blind:{blind_run}"], **SMALL,
    )  # fmt: skip
    assert {(row.reference, row.level_set) for row in result.reference_comparisons} == {
        ("blind", "train"),
        ("blind", "test"),
    }
    assert "blind" in repr(result)


def test_a_blind_run_learns_as_the_network_with_black_images_would(blind_run):
    import torch

    from gapfloor.training.agent import make_agent

    blind = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=0, is_blind=True)
    seeing = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=0)
    black = torch.zeros((5, 64, 64, 3), dtype=torch.uint8)
    for agent, frames in ((blind, torch.full_like(black, 200)), (seeing, black)):
        logits, values = agent(frames)
        (logits.square().sum() + values.sum()).backward()
    for one, other in zip(blind.parameters(), seeing.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-5)


def test_something_that_is_not_a_reference_is_refused_before_anything_is_played(tmp_path, blind_run):
    for name, message in [
        ("best-konstant", "did you mean best-constant"),
        ("random-weights:impala:none", "needs a number of networks"),
        ("blind:", "needs a policy after the colon"),
    ]:
        with pytest.raises(UsageError, match=message):
            measure_floor("starpilot", references=name, store=tmp_path / "store", **SMALL)
    assert not (tmp_path / "store").exists()
    with pytest.raises(PolicyError, match="sees its observations"):
        measure_floor(
            "starpilot", references="blind:small_policies:linear", store=tmp_path / "store", **SMALL
        )
    with pytest.raises(UsageError, match="actions go from 0 to 14"):
        measure_floor("starpilot", references="constant:99", store=tmp_path / "store", **SMALL)
    with pytest.raises(PolicyError, match="is not a policy that gapfloor can load"):
        measure_floor("starpilot", references="upper:nosuch", store=tmp_path / "store", **SMALL)
    assert not (tmp_path / "store").exists()
    with pytest.raises(UsageError, match="chosen on training levels"):
        measure_floor("starpilot", references="best-constant", **{**SMALL, "train": "none"})


def test_a_run_is_an_agent_and_a_reference_in_one_store_whichever_came_first(blind_run, tmp_path):
    arguments = {"game": "starpilot", "rules": "sampled", **SMALL}
    as_agent = evaluate(str(blind_run), store=tmp_path / "agent", **arguments)
    again = evaluate(
        small_policies.linear(), store=tmp_path / "agent", references=[f"blind:{blind_run}"], **arguments
    )
    measure_floor("starpilot", references=f"blind:{blind_run}", store=tmp_path / "reference", **SMALL)
    other = evaluate(str(blind_run), store=tmp_path / "reference", **arguments)
    expected = {row.level_set: row.mean for row in as_agent.returns if row.agent}
    assert {row.level_set: row.mean for row in again.returns if row.reference == "blind"} == expected
    assert {row.level_set: row.mean for row in other.returns if row.agent} == expected
    assert {row.reference for row in analyse(tmp_path / "agent").floors} == {"uniform", "blind"}


def test_one_reference_name_holds_one_content(tmp_path):
    first, second = "upper:small_policies:linear", "upper:small_policies:other_linear"
    with pytest.raises(UsageError, match="would both be filed as the reference upper"):
        measure_floor("starpilot", references=[first, second], store=tmp_path, **SMALL)
    measure_floor("starpilot", references=first, store=tmp_path, **SMALL)
    with pytest.raises(StoreError, match="holds another upper of starpilot"):
        measure_floor("starpilot", references=second, store=tmp_path, **SMALL)


@pytest.mark.parametrize("name", ["constant:\u00b2", "random-weights:impoola:\u00b2"])
def test_a_superscript_is_not_a_number(name):
    with pytest.raises(UsageError, match="needs a"):
        measure_floor("starpilot", references=name, **SMALL)


def test_a_policy_is_never_asked_about_a_slot_that_nobody_plays():
    class Strict:
        """Divides by what it sees, as an embedding of an empty text would fail."""

        def logits(self, observations):
            assert (observations.reshape(len(observations), -1).max(axis=1) > 0).all()
            return np.zeros((len(observations), 3), dtype=np.float32)

    evaluate(Strict(), game="gymnasium_envs:corridor", rules="sampled", batch=8, **SMALL)


def test_the_analysis_gives_a_constant_action_of_a_census_no_error(tmp_path):
    measure_floor("bigfish", references=["uniform", "constant:7"], store=tmp_path, **SMALL)
    sems = {(row.reference, row.level_set): row.sem for row in analyse(tmp_path).floors}
    assert sems["constant:7", "test"] == 0.0
    assert sems["uniform", "test"] > 0.0
