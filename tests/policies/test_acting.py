"""Policies that only act: what they may look like, how they are seeded, and what their cells say."""

from __future__ import annotations

import copy
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

import gapfloor
from gapfloor.actions.spaces import Box, Discrete
from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.acting import ActingPolicy, acting_policy, as_action
from gapfloor.policies.policy import as_policy
from gapfloor.records.store import Store

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL: dict[str, Any] = {
    "game": "gym:CartPole-v1", "rules": "own", "draws": 0, "episodes": 16, "train": "0:16", "test": "100:116",
    "progress": False, "workers": 1,
}  # fmt: skip


class Lean:
    """Pushes the way the pole leans, and sometimes not; its random numbers are those of the seed."""

    def __init__(self, chance: float = 0.2) -> None:
        self.chance = chance

    def seed(self, number: int) -> None:
        self.rng = np.random.default_rng(number)

    def act(self, observation: np.ndarray) -> int:
        return int(self.rng.random() < self.chance) ^ int(observation[2] > 0)


class Remembers:
    """Pushes left and right in turn: without a reset, an episode would begin where the last one ended."""

    is_deterministic = True

    def reset(self) -> None:
        self.steps = 0

    def predict(self, observation: np.ndarray) -> tuple[int, None]:
        self.steps += 1
        return self.steps % 2, None


class Unseeded:
    def select_action(self, observation: np.ndarray) -> int:
        return int.from_bytes(os.urandom(1)) % 2


class Together:
    """Asked about all slots at once."""

    batched = is_deterministic = True

    def compute_single_action(self, observations: np.ndarray) -> np.ndarray:
        return (observations[:, 2] > 0).astype(int)


class Single:
    """The methods of RLlib's algorithms: one has arguments with defaults, and `reset` is about something else."""

    is_deterministic = True

    def reset(self, new_config: dict[str, Any], logger_creator: Any = None) -> None:
        raise AssertionError("not a reset of an episode")

    def compute_single_action(self, observation: np.ndarray, explore: bool = False) -> tuple[int, list, dict]:
        return int(observation[2] > 0), [], {}


class Torque:
    """Acts with real numbers and is seeded by its reset."""

    def reset(self, seed: int) -> None:
        self.noise = np.random.default_rng(seed)

    def act(self, observation: np.ndarray) -> np.ndarray:
        return self.noise.normal(size=1) - observation[2:]


trained: Any = None


def ask_trained(observation: np.ndarray) -> int:
    return trained.act(observation)


def lean_right(observation: np.ndarray) -> int:
    return int(observation[2] > 0)


def returns(store: Path) -> dict[str, list[float]]:
    episodes = Store(store).episodes()
    chosen = episodes.filter([rule == "own" for rule in episodes.column("rule").to_pylist()])
    return {name: chosen.column(name).to_pylist() for name in ("level_seed", "episode_return")}


@pytest.mark.parametrize("policy", [Lean(), Remembers(), Unseeded(), Together(), Single(), lean_right])
def test_whatever_acts_is_compared_with_the_floor(policy: Any, tmp_path: Path) -> None:
    found = gapfloor.evaluate(policy, store=tmp_path, **SMALL)
    assert "own" in str(found)
    assert len(returns(tmp_path)["episode_return"]) == 32


def test_real_valued_actions_and_a_seed_in_reset(tmp_path: Path) -> None:
    pendulum = SMALL | {"game": "gym:Pendulum-v1", "episodes": 4, "slots": 2}
    for name, batch in {"one": 1, "two": 16}.items():
        gapfloor.evaluate(Torque(), store=tmp_path / name, batch=batch, **pendulum)
    assert returns(tmp_path / "one") == returns(tmp_path / "two")


def test_episodes_are_those_of_their_seeds_whoever_plays_them(tmp_path: Path) -> None:
    for name, changed in {"one": {}, "narrow": {"workers": 2}}.items():
        gapfloor.evaluate(Lean(), store=tmp_path / name, **SMALL | changed)
    assert returns(tmp_path / "one") == returns(tmp_path / "narrow")
    found = gapfloor.Store(tmp_path / "one").verify(episodes=8, whole_cells=0, progress=False)
    assert found.is_sound


def test_an_episode_begins_with_a_reset_object(tmp_path: Path) -> None:
    gapfloor.evaluate(Remembers(), store=tmp_path, batch=3, **SMALL)
    gapfloor.evaluate(Remembers(), store=tmp_path / "other", batch=16, **SMALL)
    assert returns(tmp_path) == returns(tmp_path / "other")


def test_cells_and_verify_say_what_cannot_be_repeated(tmp_path: Path) -> None:
    found = gapfloor.evaluate(Unseeded(), store=tmp_path, **SMALL)
    assert any("cannot be repeated exactly" in note for note in found.notes)
    cells = [cell for cell in Store(tmp_path).cells() if cell.manifest.labels["rule"] == "own"]
    assert {cell.manifest.record["repeatable"] for cell in cells} == {"no"}
    verification = gapfloor.Store(tmp_path).verify(episodes=4, progress=False)
    assert verification.is_sound
    assert any("cannot be repeated" in reason for reason in verification.not_replayed)


def test_a_generator_kept_as_an_attribute_is_seeded() -> None:
    class Draws:
        def __init__(self) -> None:
            self.rng = np.random.default_rng()

        def act(self, observation: Any) -> float:
            return float(self.rng.random())

    policy = acting_policy(Draws(), name="draws")
    assert policy.is_repeatable
    one, other = policy.slots(2)
    answers = []
    for slot, number in ((one, 5), (other, 5), (one, 5), (one, 6)):
        slot.begin(number)
        answers.append(slot.ask(None))
    assert answers[0] == answers[1] == answers[2] != answers[3]


def test_other_numbers_are_another_policy_and_a_copy_is_the_same() -> None:
    hashes = [acting_policy(Lean(chance), name="lean").fingerprint for chance in (0.2, 0.2, 0.3)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert acting_policy(lean_right, name="f").fingerprint != hashes[0]


def test_weights_of_a_library_are_part_of_the_policy_however_it_is_given() -> None:
    model = PPO("MlpPolicy", "CartPole-v1", seed=1, device="cpu")
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.policy.action_net.bias += 1
    forms: list[Callable[[PPO], Any]] = [
        lambda each: each,
        lambda each: each.predict,
        lambda each: functools.partial(each.predict, deterministic=True),
        lambda each: lambda observation: each.predict(observation)[0],
    ]
    for form in forms:
        hashes = [acting_policy(form(each), name="p").fingerprint for each in (model, model, other)]
        assert hashes[0] == hashes[1] != hashes[2]


def test_the_weights_that_an_object_gives_itself_are_part_of_the_policy() -> None:
    class Keeper(Lean):
        """As an algorithm of RLlib, whose weights lie deeper than its attributes are looked at."""

        def __init__(self, weight: float) -> None:
            super().__init__()
            self.find = lambda: weight

        def get_weights(self) -> dict[str, dict[str, np.ndarray]]:
            return {"default_policy": {"layer": np.full(3, self.find())}}

    for form in (lambda each: each, lambda each: each.act, lambda each: functools.partial(each.act)):
        hashes = [acting_policy(form(Keeper(weight)), name="p").fingerprint for weight in (1.0, 1.0, 2.0)]
        assert hashes[0] == hashes[1] != hashes[2]


def test_a_model_that_a_function_takes_from_its_module_is_part_of_the_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashes = []
    for seed in (1, 1, 2):
        monkeypatch.setitem(globals(), "trained", Lean(seed))
        hashes.append(acting_policy(ask_trained, name="p").fingerprint)
    assert hashes[0] == hashes[1] != hashes[2]


def test_predict_of_stable_baselines3_plays_what_its_network_plays_greedily(tmp_path: Path) -> None:
    model = PPO("MlpPolicy", "CartPole-v1", seed=1, device="cpu")
    predict = functools.partial(model.predict, deterministic=True)
    predict.is_deterministic = True  # type: ignore[attr-defined]
    gapfloor.evaluate(predict, store=tmp_path, **SMALL)
    gapfloor.evaluate(model, store=tmp_path, **SMALL | {"rules": "greedy"})
    played: dict[str, list[Any]] = {"own": [], "greedy": [], "uniform": []}
    for row in Store(tmp_path).episodes().to_pylist():
        played[row["rule"]].append([row[name] for name in ("level_set", "slot", "index", "episode_return")])
    assert sorted(played["own"]) == sorted(played["greedy"]) != sorted(played["uniform"])


def test_what_a_policy_states_about_its_rule_is_recorded() -> None:
    talker = Lean()
    talker.temperature = 0.7  # type: ignore[attr-defined]
    assert acting_policy(talker, name="talker").record == {
        "repeatable": "yes",
        "stated_rule": "temperature:0.7",
    }


@pytest.mark.parametrize(
    ("answer", "space", "expected"),
    [
        (np.array([2]), Discrete(3), 2),
        ([1, 1], Discrete(6, factors=(3, 2)), 3),
        (0.5, Box((-1.0,), (1.0,)), [0.5]),
        ([3.0, -3.0], Box((-1.0, -1.0), (1.0, 1.0)), [1.0, -1.0]),
    ],
)
def test_actions_are_taken_in_the_form_of_the_space(answer: Any, space: Any, expected: Any) -> None:
    assert np.array_equal(as_action(answer, space, name="p"), expected)


@pytest.mark.parametrize(
    ("answer", "space"),
    [(3, Discrete(3)), (0.5, Discrete(3)), ("left", Discrete(3)), (None, Discrete(3)), ([1.0], Box((0, 0), (1, 1)))],
)  # fmt: skip
def test_what_is_not_an_action_is_refused(answer: Any, space: Any) -> None:
    with pytest.raises(PolicyError, match="as an action, but the actions are"):
        as_action(answer, space, name="p")


def test_a_policy_that_only_acts_has_one_rule() -> None:
    assert isinstance(as_policy(Lean()), ActingPolicy)
    with pytest.raises(UsageError, match=r"only acts .* one rule: use own, not greedy"):
        gapfloor.evaluate(Lean(), **SMALL | {"rules": "greedy"})

    class Logits:
        def logits(self, observations: Any) -> np.ndarray:
            return np.zeros((len(observations), 2))

    with pytest.raises(UsageError, match="own is for policies that only act"):
        gapfloor.evaluate(Logits(), **SMALL)


def test_a_failure_in_the_policy_names_its_line() -> None:
    def broken(observation: Any) -> int:
        return observation["nothing"]

    with pytest.raises(PolicyError, match=r"The policy broken failed: IndexError.*test_acting\.py"):
        gapfloor.evaluate(broken, **SMALL)


def test_the_examples_run_as_a_plain_script_and_as_a_command(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    script = subprocess.run(
        [sys.executable, str(EXAMPLES / "evaluate_acting.py")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert script.returncode == 0, script.stderr
    few = subprocess.run(
        [sys.executable, str(EXAMPLES / "few_episodes.py"), "Corridor"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert "Corridor: solved 20 of 20 levels, random play 3; only one of them: 17; p = 1.5e-05" in few.stdout
    for agent in ("RandomShooting", "EpsilonGreedy", "solve_minigrid", "TextAgent"):
        assert f"On held-out levels this run of {agent} scores" in script.stdout
    store, policy = str(tmp_path / "store"), "acting:acting_policies:EpsilonGreedy"
    game = ["--game", "gym:CartPole-v1", "--rules", "own", "--draws", "0", "--episodes", "16"]
    for arguments, said in (
        (["evaluate", policy, *game, "--store", store], "EpsilonGreedy"),
        (["verify", store, "--policy", policy, "--episodes", "64"], "64 of 64 episodes"),
        (["replay", store, "--policy", policy, "--count", "1"], "as recorded"),
        (["report", store, "--formats", "html", "--out", str(tmp_path / "page")], "index.html"),
    ):
        command = subprocess.run(
            [str(Path(sys.executable).with_name("gapfloor")), *arguments],
            cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert command.returncode == 0, command.stdout + command.stderr
        assert said in command.stdout + command.stderr
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    for said in ("primary rule: own", "the data have no entropies", 'id="replays"'):
        assert said in page
