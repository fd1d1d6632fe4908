"""The probe tells sampling from determinism by calls alone, with a stated error."""

from __future__ import annotations

import numpy as np
import pytest

from gapfloor.audit.probe import calls_needed, probe_rule
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast

OBSERVATIONS = list(np.random.default_rng(3).normal(size=(12, 4)))
WEIGHTS = np.random.default_rng(4).normal(size=(4, 5))


def chances(observation: np.ndarray) -> np.ndarray:
    scores = np.exp(observation @ WEIGHTS)
    return scores / scores.sum()


def sample(observation: np.ndarray) -> int:
    return int(np.random.choice(5, p=chances(observation)))


def greedy(observation: np.ndarray) -> int:
    return int(chances(observation).argmax())


def test_a_sampling_policy_and_a_greedy_one_are_told_apart():
    assert (probe_rule(sample, OBSERVATIONS).rule, probe_rule(greedy, OBSERVATIONS).rule) == (
        "sampled",
        "deterministic",
    )
    assert probe_rule(greedy, OBSERVATIONS).n_changing == 0


def test_a_harness_that_calls_itself_deterministic_and_samples_is_caught():
    result = probe_rule(sample, OBSERVATIONS, claims="deterministic")
    assert "calls itself deterministic" in result.contradicts
    assert probe_rule(greedy, OBSERVATIONS, claims="deterministic").contradicts is None
    assert "never changed" in probe_rule(greedy, OBSERVATIONS, claims="stochastic").contradicts


def test_a_policy_that_seeds_itself_is_deterministic_as_far_as_calls_can_tell():
    def act(observation: np.ndarray) -> int:
        return int(np.random.default_rng(0).choice(5, p=chances(observation)))

    assert probe_rule(act, OBSERVATIONS).is_deterministic


def test_the_stated_error_rate_holds():
    """A policy at the limit (5% off its favourite) is missed no more often than stated, over 400 probes."""
    rng = np.random.default_rng(9)
    missed = sum(
        probe_rule(
            lambda observation: int(rng.random() < 0.05), [0], error_rate=0.05, reseed=lambda seed: None
        ).is_deterministic
        for _ in range(400)
    )
    # 400 draws at 5%: more than 35 would be beyond 99.9% of the binomial.
    assert missed <= 35
    assert missed > 5


@pytest.mark.parametrize(
    ("error_rate", "chance", "calls"), [(0.001, 0.05, 136), (0.05, 0.5, 6), (0.01, 0.01, 460)]
)
def test_the_number_of_calls_follows_from_the_error_rate(error_rate: float, chance: float, calls: int):
    assert calls_needed(error_rate=error_rate, smallest_chance=chance) == calls
    assert (1 - chance) ** (calls - 1) <= error_rate < (1 - chance) ** (calls - 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observations": []}, "`observations` is empty"),
        ({"claims": "greedy"}, "`claims` must be"),
        ({"error_rate": 0.0}, "must lie between 0 and 1"),
        ({"act": lambda observation: [1, 2]}, "return one action as a number or an array"),
        ({"act": lambda observation: "left"}, "return one action as a number or an array"),
    ],
)
def test_bad_input_is_one_sentence(arguments: dict[str, object], message: str):
    given: dict[str, object] = {"act": greedy, "observations": OBSERVATIONS} | arguments
    with pytest.raises(UsageError, match=message):
        probe_rule(given.pop("act"), given.pop("observations"), **given)  # type: ignore[arg-type]


class Alternating:
    """Deterministic, with a memory: it answers 0 and 1 in turn."""

    def __init__(self) -> None:
        self.calls = 0

    def reset(self) -> None:
        self.calls = 0

    def __call__(self, observation: np.ndarray) -> int:
        self.calls += 1
        return self.calls % 2


def test_a_policy_with_a_memory_is_undecided_until_it_can_be_reset():
    policy = Alternating()
    result = probe_rule(policy, OBSERVATIONS, claims="deterministic")
    assert (result.rule, result.contradicts) == ("undecided", None)
    assert "reset=" in result.note
    assert probe_rule(policy, OBSERVATIONS, reset=policy.reset).rule == "deterministic"


def test_tuples_and_continuous_actions_are_accepted():
    def act(observation: np.ndarray) -> tuple[np.ndarray, None]:
        return observation @ WEIGHTS, None

    def noisy(observation: np.ndarray) -> np.ndarray:
        return observation @ WEIGHTS + np.random.normal(size=5)

    assert probe_rule(act, OBSERVATIONS).rule == "deterministic"
    assert probe_rule(noisy, OBSERVATIONS).rule == "sampled"
