"""Streams: one per purpose, made from the seed, exact after a round trip through text."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gapfloor.training.rewards import RewardScale
from gapfloor.training.streams import PURPOSES, draw_seed, load_stream, make_stream, save_stream

pytestmark = pytest.mark.fast


def test_seed_and_purpose_decide_a_stream() -> None:
    draws = {(s, p): make_stream(s, p).random(4).tobytes() for s in range(3) for p in PURPOSES}
    assert len(set(draws.values())) == len(draws)
    assert make_stream(1, "actions").random(4).tobytes() == draws[1, "actions"]
    assert all(0 <= draw_seed(s, "levels") < 2**31 - 1 for s in range(100))


def test_a_saved_stream_continues_where_it_was() -> None:
    stream = make_stream(7, "minibatches")
    stream.permutation(100)
    stream.integers(2, size=3, dtype=np.uint32)  # leaves half a word in the generator
    copy = load_stream(json.loads(json.dumps(save_stream(stream))))
    assert copy.bit_generator.state == stream.bit_generator.state
    assert np.array_equal(copy.permutation(1000), stream.permutation(1000))


def test_an_unrecorded_purpose_is_refused() -> None:
    with pytest.raises(ValueError, match="`purpose` is 'dice'"):
        make_stream(1, "dice")


def test_reward_scale_is_the_deviation_of_all_discounted_returns() -> None:
    rng = np.random.default_rng(0)
    scale, seen, returns = RewardScale.start(5), [], np.zeros(5)
    for _ in range(400):
        rewards = rng.exponential(3.0, size=5).astype(np.float32)
        firsts = rng.random(5) < 0.1
        scaled = scale.scale(rewards, firsts, discount=0.9)
        returns = 0.9 * returns + rewards
        seen.extend(returns)
        returns[firsts] = 0
    # The count starts at 1e-4, so the prior's weight vanishes against 2,000 values.
    assert scale.variance == pytest.approx(np.var(seen), rel=1e-4)
    np.testing.assert_allclose(scaled, np.clip(rewards / np.std(seen), -10, 10), rtol=1e-3)


def test_scaled_rewards_are_clipped_at_ten() -> None:
    scale = RewardScale.start(200)
    rewards = np.zeros(200, np.float32)
    rewards[:2] = 1000.0, -1000.0
    scaled = scale.scale(rewards, np.zeros(200, bool), discount=0.999)
    assert scaled.max() == pytest.approx(10)
    assert scaled.min() == pytest.approx(-10)
