"""Distributions over any action space: samples, greedy actions and entropies, against torch and against counting."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import distributions as theirs

from gapfloor.errors import PolicyError
from gapfloor.policies.distributions import Beta, Categoricals, Gaussian, SquashedGaussian

N = 40_000
LOW, HIGH = np.array([-2.0, 0.0]), np.array([2.0, 1.0])


def uniforms(columns: int) -> np.ndarray:
    return np.random.default_rng(0).random((N, columns))


def rows(*values: float) -> np.ndarray:
    return np.tile(np.array(values), (N, 1))


def test_several_categoricals_are_sampled_as_often_as_they_say_and_masks_hold() -> None:
    made = Categoricals((rows(0.0, 1.0, -np.inf), rows(2.0, 0.0)))
    sample = made.sample(uniforms(made.n_uniforms))
    first = np.bincount(sample[:, 0], minlength=3) / N
    assert first == pytest.approx([1 / (1 + np.e), np.e / (1 + np.e), 0], abs=0.015)
    assert (sample[:, 1] == 0).mean() == pytest.approx(np.exp(2) / (1 + np.exp(2)), abs=0.015)
    assert made.mode()[0].tolist() == [1, 0]
    logits = [torch.tensor([0.0, 1.0]), torch.tensor([2.0, 0.0])]
    both = sum(float(theirs.Categorical(logits=each).entropy()) for each in logits)
    assert made.entropy()[0] == pytest.approx(both, abs=1e-6)


def test_a_gaussian_is_clipped_and_its_mode_is_its_mean() -> None:
    made = Gaussian(rows(0.5, 3.0), rows(1.0, 0.1), LOW, HIGH)
    sample = np.asarray(made.sample(uniforms(2)))
    assert (sample >= LOW).all()
    assert (sample <= HIGH).all()
    assert made.mode()[0].tolist() == [0.5, 1.0]
    assert made.mode_name == "mode"
    normal = theirs.Normal(torch.tensor([0.5, 3.0]), torch.tensor([1.0, 0.1]))
    assert made.entropy()[0] == pytest.approx(float(normal.entropy().sum()), abs=1e-6)


def test_a_squashed_gaussian_names_its_greedy_action_for_what_it_is() -> None:
    made = SquashedGaussian(rows(0.7, -0.2), rows(0.5, 0.9), LOW, HIGH)
    sample = np.asarray(made.sample(uniforms(2)))
    assert made.mode_name == "tanh of the mean"
    greedy = np.asarray(made.mode())[0]
    assert np.median(sample, axis=0) == pytest.approx(greedy, abs=0.02)  # the median, and not the mean
    assert abs(sample.mean(axis=0) - greedy).max() > 0.02
    counts = [np.histogram(sample[:, i], bins=100, range=(LOW[i], HIGH[i]), density=True) for i in (0, 1)]
    counted = sum(-(d[d > 0] * np.log(d[d > 0])).sum() * (e[1] - e[0]) for d, e in counts)
    assert made.entropy()[0] == pytest.approx(counted, abs=0.02)


@pytest.mark.parametrize(("alpha", "name"), [(3.0, "mode"), (0.5, "mean")])
def test_a_beta_without_a_mode_plays_its_mean_and_says_so(alpha: float, name: str) -> None:
    made = Beta(rows(alpha, 2.0), rows(2.0, 4.0), LOW, HIGH)
    assert made.mode_name == name
    sample = np.asarray(made.sample(uniforms(2)))
    inner = theirs.Beta(torch.tensor([alpha, 2.0]), torch.tensor([2.0, 4.0]))
    expected = LOW + inner.mean.numpy() * (HIGH - LOW)
    assert sample.mean(axis=0) == pytest.approx(expected, abs=0.03)
    if name == "mean":
        assert np.asarray(made.mode())[0] == pytest.approx(expected, abs=1e-6)
    entropy = float(inner.entropy().sum()) + np.log(HIGH - LOW).sum()
    assert made.entropy()[0] == pytest.approx(entropy, abs=1e-5)


def test_parameters_from_which_nothing_can_be_drawn_are_refused() -> None:
    good = np.zeros((2, 2))
    with pytest.raises(PolicyError, match="not finite"):
        Categoricals((np.full((2, 3), -np.inf),))
    with pytest.raises(PolicyError, match="Dimension 1 has 3 rows"):
        Categoricals((good, np.zeros((3, 2))))
    with pytest.raises(PolicyError, match=r"the standard deviation .* above 0"):
        Gaussian(good, good, LOW, HIGH)
    with pytest.raises(PolicyError, match="beta in the shape"):
        Beta(good + 1, np.ones((2, 3)), LOW, HIGH)
    with pytest.raises(PolicyError, match="one row per observation"):
        SquashedGaussian(np.zeros(3), np.ones(3), LOW, HIGH)
