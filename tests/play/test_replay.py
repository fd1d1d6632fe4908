import json

import numpy as np
import pytest

import small_policies
from gapfloor import evaluate
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.play.replay import RecordedEpisode, choose_episodes, replay_episodes
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store

SMALL = {"episodes": 8, "slots": 4, "draws": (0,), "train": "0:20", "test": "100:120", "workers": 1}


@pytest.fixture
def policy():
    made = small_policies.linear()
    made.fingerprint = "linear"
    return made


@pytest.fixture
def store(tmp_path, policy):
    evaluate(policy, game="starpilot", rules="sampled,greedy", store=tmp_path, **SMALL)
    return Store(tmp_path)


def test_a_replay_is_the_recorded_episode_under_every_rule_and_the_floor(store, policy):
    episodes = choose_episodes(store.cells(), count=1)
    paths = replay_episodes(episodes, store=store, sources=[PolicySource("linear", given=policy)])
    sidecars = [json.loads(path.with_suffix(".json").read_text()) for path in paths]
    assert sorted(sidecar["rule"] for sidecar in sidecars) == ["greedy", "sampled", "uniform"]
    assert len({sidecar["level_seed"] for sidecar in sidecars}) == 1
    for path, sidecar in zip(paths, sidecars, strict=True):
        frames = np.load(path)["frames"]
        assert frames.shape == (sidecar["n_frames"], 64, 64, 3)
        assert frames.any()


def test_the_same_replay_gives_the_same_bytes(store, policy):
    episodes = choose_episodes(store.cells(), count=1)
    sources = [PolicySource("linear", given=policy)]
    first = [path.read_bytes() for path in replay_episodes(episodes, store=store, sources=sources)]
    assert [path.read_bytes() for path in replay_episodes(episodes, store=store, sources=sources)] == first


def test_a_return_that_is_not_the_recorded_one_is_refused(store):
    floor = next(cell for cell in store.cells() if cell.is_reference)
    wrong = RecordedEpisode(floor, slot=0, index=1, level_seed=3, episode_return=99.0, length=5)
    with pytest.raises(CheckFailedError, match="differs from the recorded episode"):
        replay_episodes([wrong], store=store)
    assert [path.suffix for path in (store.root / "replays").iterdir()] == [".failed"]


def test_a_missing_policy_is_asked_for(store):
    episodes = [
        e for e in choose_episodes(store.cells(), count=1) if e.cell.manifest.labels["rule"] == "greedy"
    ]
    with pytest.raises(UsageError, match="give its checkpoint"):
        replay_episodes(episodes, store=store)
