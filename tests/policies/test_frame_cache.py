"""Logits kept by frame are those that the policy gives, bit for bit, and nothing else is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folders import file_hashes
from gapfloor import evaluate
from gapfloor.play import group
from gapfloor.policies.checkpoint import load_network
from gapfloor.policies.frame_cache import CachedPolicy, interchangeable_sizes, with_frame_cache

AGENT = Path("agents/miner-easy-impala-100k-s1")
POOL = np.random.default_rng(0).integers(0, 256, (12, 64, 64, 3), dtype=np.uint8)
#: Some frames differ in one byte only.
POOL[6:] = POOL[:6]
POOL[6:, 0, 0, 0] += 1


@pytest.fixture(scope="module")
def policies() -> dict[str, object]:
    path = AGENT / "checkpoint.safetensors"
    return {backend: load_network(path, backend=backend) for backend in ("onnxruntime", "torch")}


@pytest.mark.parametrize("backend", ["onnxruntime", "torch"])
@settings(max_examples=12, deadline=None)
@given(
    batches=st.lists(st.lists(st.integers(0, len(POOL) - 1), min_size=6, max_size=6), min_size=1, max_size=6),
    kept=st.integers(1, 8),
)
def test_cached_logits_are_the_policys_in_every_bit(policies, backend, batches, kept) -> None:
    policy = policies[backend]
    cached = CachedPolicy(policy, most_bytes=2 * kept * POOL[0].nbytes)
    for rows in batches:
        observations = POOL[rows]
        expected, found = policy.logits(observations), cached.logits(observations)
        assert found.dtype == np.float32
        assert found.tobytes() == expected.tobytes()


def test_a_frame_that_was_seen_is_not_computed_again(policies) -> None:
    cached = CachedPolicy(policies["onnxruntime"])
    for rows in ([0, 1, 2, 3], [0, 1, 2, 3], [3, 2, 2, 0], [4, 4, 5, 0], [5, 4, 1, 1]):
        cached.logits(POOL[rows])
    assert cached.n_computed == 4 + 2


def test_memory_is_bounded_and_what_was_seen_last_stays(policies) -> None:
    cached = CachedPolicy(policies["onnxruntime"], most_bytes=4 * POOL[0].nbytes)
    for row in range(8):
        cached.logits(POOL[[0, row]])
        assert len(cached._kept) <= 4
    before = cached.n_computed
    cached.logits(POOL[[0, 7]])
    assert cached.n_computed == before


def test_any_number_of_rows_is_interchangeable_in_onnx_runtime(policies) -> None:
    policy = policies["onnxruntime"]
    assert interchangeable_sizes(policy, POOL, policy.logits(POOL)) == list(range(1, 13))


class Mixing:
    """Logits that depend on the other rows."""

    device = "cpu"

    def logits(self, observations: np.ndarray) -> np.ndarray:
        sums = observations.reshape(len(observations), -1).sum(axis=1, dtype=np.float32)
        return np.stack([sums, np.roll(sums, 1)], axis=1)


class OnlyTogether(Mixing):
    """Logits of a row that depend on the number of rows, as in torch."""

    def logits(self, observations: np.ndarray) -> np.ndarray:
        return np.repeat(super().logits(observations)[:, :1], 2, axis=1) + len(observations)


def test_a_policy_whose_rows_depend_on_each_other_is_not_kept() -> None:
    policy, cached = Mixing(), CachedPolicy(Mixing())
    for rows in ([0, 1, 2], [2, 1, 0], [0, 1, 2]):
        assert np.array_equal(cached.logits(POOL[rows]), policy.logits(POOL[rows]))
    assert cached.n_computed == 0


def test_where_the_number_of_rows_matters_only_whole_batches_are_computed() -> None:
    policy, cached = OnlyTogether(), CachedPolicy(OnlyTogether())
    for rows in ([0, 1, 2], [2, 1, 0], [0, 5, 2], [1, 5, 2]):
        assert np.array_equal(cached.logits(POOL[rows]), policy.logits(POOL[rows]))
    assert cached.n_computed == 3 + 3


def test_only_policies_whose_content_is_all_there_is_are_kept(policies) -> None:
    assert isinstance(with_frame_cache(policies["torch"]), CachedPolicy)
    assert isinstance(with_frame_cache(Mixing()), Mixing)


def test_cells_have_the_same_bytes_with_and_without_the_cache(tmp_path: Path, monkeypatch) -> None:
    small = {
        "game": "miner", "episodes": 8, "slots": 4, "draws": (0, 1), "train": "0:6", "test": "100:106",
        "rules": "sampled,greedy", "workers": 1,
    }  # fmt: skip
    evaluate(str(AGENT), store=tmp_path / "with", **small)
    monkeypatch.setattr(group, "with_frame_cache", lambda policy: policy)
    evaluate(str(AGENT), store=tmp_path / "without", **small)
    assert file_hashes(tmp_path / "with" / "cells") == file_hashes(tmp_path / "without" / "cells")
