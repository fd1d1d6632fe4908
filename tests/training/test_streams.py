"""Streams: one per purpose, made from the seed, exact after a round trip through text."""

from __future__ import annotations

import json

import numpy as np
import pytest

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
