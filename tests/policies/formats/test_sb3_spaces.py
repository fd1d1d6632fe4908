"""Stable-Baselines3 models over every action space: greedy actions and densities are the library's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import TQC, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, PPO, SAC, TD3

import action_space_envs
from gapfloor.actions.spaces import Box, Discrete
from gapfloor.engines.registry import make_spec
from gapfloor.errors import PolicyError, UsageError
from gapfloor.play.candidate import Entrant, load_candidates
from gapfloor.play.protocol import InferenceSettings
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import LogitsReader
from gapfloor.rules.rule import parse_rules

OBSERVATIONS = np.random.default_rng(0).uniform(-1, 1, (6, 3)).astype(np.float32)
FIRST = np.ones(6, dtype=bool)
BOX = Box((-1.0, 0.0), (2.0, 0.5))
SMALL: dict[Any, dict[str, Any]] = {
    **{algorithm: {"buffer_size": 64} for algorithm in (SAC, TD3, DDPG, TQC)},
    **{algorithm: {"n_steps": 16} for algorithm in (PPO, A2C, MaskablePPO, RecurrentPPO)},
}


def model_of(algorithm: Any, env: str, **settings: Any) -> Any:
    name = "MlpLstmPolicy" if algorithm is RecurrentPPO else "MlpPolicy"
    made = getattr(action_space_envs, env)()
    model = algorithm(name, made, seed=1, device="cpu", **SMALL[algorithm], **settings)
    with torch.no_grad():  # so that outputs differ from row to row
        for parameter in model.policy.parameters():
            parameter.mul_(2.0)
    return model


def both(model: Any, folder: Path) -> list[Any]:
    """The policy of the model in memory, and of its file."""
    model.save(folder / "model.zip")
    return [PolicySource("memory", given=model).load(), PolicySource(f"sb3:{folder / 'model.zip'}").load()]


def read(policy: Any, space: Any) -> LogitsReader:
    reader = LogitsReader(policy, name="ours", n_slots=6, space=space)
    reader.last = reader.read(OBSERVATIONS, FIRST)  # type: ignore[attr-defined]
    return reader


@pytest.mark.parametrize("algorithm", [PPO, A2C, SAC, TQC, TD3, DDPG, RecurrentPPO])
def test_the_greedy_action_in_a_box_is_the_librarys(algorithm: Any, tmp_path: Path) -> None:
    model = model_of(algorithm, "box")
    theirs, _ = model.predict(OBSERVATIONS, deterministic=True, episode_start=FIRST)
    assert np.ptp(theirs, axis=0).max() > 0.001
    for policy in both(model, tmp_path):
        distribution = read(policy, BOX).distribution
        assert distribution is not None
        assert distribution.mode(BOX) == pytest.approx(theirs.reshape(6, 2), abs=1e-6)
        assert distribution.is_deterministic is (algorithm in (TD3, DDPG))
        assert (distribution.mode_name == "tanh of the mean") is (algorithm in (SAC, TQC))


@pytest.mark.parametrize(("algorithm", "settings"), [(PPO, {}), (SAC, {}), (SAC, {"use_sde": True})])
def test_samples_in_a_box_are_spread_as_the_librarys_are(
    algorithm: Any, settings: Any, tmp_path: Path
) -> None:
    model = model_of(algorithm, "box", **settings)
    rows, n = np.repeat(OBSERVATIONS[:1], 4000, axis=0), 4000
    torch.manual_seed(0)
    if settings:
        model.policy.reset_noise(n)
    theirs = model.predict(rows, deterministic=False)[0].reshape(n, 2)
    for policy in both(model, tmp_path):
        found = read(policy, BOX).distribution
        assert found is not None
        ours = found.rows(np.zeros(n, dtype=int)).sample(np.random.default_rng(0).random((n, 2)), BOX)
        assert ours.mean(axis=0) == pytest.approx(theirs.mean(axis=0), abs=0.06)
        assert ours.std(axis=0) == pytest.approx(theirs.std(axis=0), abs=0.06)


@pytest.mark.parametrize(
    ("env", "space"),
    [("multi_discrete", Discrete(24, factors=(3, 2, 4))), ("four_bits", Discrete(16, factors=(2, 2, 2, 2)))],
)
def test_several_numbers_have_the_probabilities_of_the_library(
    env: str, space: Discrete, tmp_path: Path
) -> None:
    model = model_of(PPO, env)
    tensors = torch.as_tensor(OBSERVATIONS)
    actions = np.array(list(np.ndindex(*space.factors)))
    with torch.no_grad():
        theirs = model.policy.get_distribution(tensors[:1]).log_prob(torch.as_tensor(actions).float()).numpy()
    for policy in both(model, tmp_path):
        logits = read(policy, space).last[0].astype(np.float64)  # type: ignore[attr-defined]
        assert logits - np.log(np.exp(logits).sum()) == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("env", ["masked", "masked_multi"])
def test_a_maskable_model_plays_only_where_masks_are_read(env: str, tmp_path: Path) -> None:
    model = model_of(MaskablePPO, env)
    model.save(tmp_path / "model.zip")
    given = [Entrant(f"sb3:{tmp_path / 'model.zip'}")]
    with pytest.raises(PolicyError, match="add --option masks=true"):
        load_candidates(given, make_spec(f"action_space_envs:{env}"), InferenceSettings(batch=4))
    spec = make_spec(f"action_space_envs:{env}", options={"masks": True})
    assert load_candidates(given, spec, InferenceSettings(batch=4))


def test_a_policy_of_another_space_is_refused_with_both_named() -> None:
    given = [Entrant(model_of(PPO, "box"))]
    with pytest.raises(PolicyError, match=r"acts in Box\(-1 to 2, 0 to 0\.5\), but .* are Discrete\(4\)"):
        load_candidates(given, make_spec("action_space_envs:discrete"), InferenceSettings(batch=4))
    spec = make_spec("action_space_envs:unbounded", options={"wrapper": "action_space_envs:bounded"})
    with pytest.raises(PolicyError, match=r"but the actions of this environment are Box\(-2 to 0.5, 3 dim"):
        load_candidates(given, spec, InferenceSettings(batch=4))


def test_a_policy_without_a_distribution_has_one_rule_and_says_so() -> None:
    spec = make_spec("action_space_envs:box")
    (candidate,) = load_candidates([Entrant(model_of(TD3, "box"))], spec, InferenceSettings(batch=4))
    rules = parse_rules("sampled,greedy,epsilon:0.1")
    assert [str(rule) for rule in candidate.own_rules(rules)] == ["greedy", "epsilon:0.1"]
    assert "has one rule: sampled would play the same as greedy" in candidate.notes(rules)[0]
    with pytest.raises(UsageError, match="use greedy, not sampled"):
        candidate.own_rules(parse_rules("sampled"))


def test_a_squashed_gaussian_says_what_greedy_plays() -> None:
    spec = make_spec("action_space_envs:box")
    (candidate,) = load_candidates([Entrant(model_of(SAC, "box"))], spec, InferenceSettings(batch=4))
    assert "plays tanh of the mean, which is not the mode" in candidate.notes(parse_rules("greedy"))[0]
