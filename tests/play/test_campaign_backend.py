"""The backend that filled a store stays the store's backend; it is part of the key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import small_policies
import small_stores
from gapfloor import evaluate
from gapfloor.errors import StoreError, UsageError
from gapfloor.play.campaign import backend_for, recorded_backends
from gapfloor.records.store import Store

AGENT = "agents/starpilot-easy-impala-100k-s1"
SMALL = {
    "game": "starpilot",
    "episodes": 8,
    "slots": 4,
    "draws": (0,),
    "train": "0:8",
    "test": "100:108",
    "workers": 1,
}


def returns_of(root: Path) -> np.ndarray:
    return Store(root).episodes().column("episode_return").to_numpy()


def test_a_store_without_networks_names_no_backend(empty_store: Store) -> None:
    small_stores.write_cell(empty_store, content={"backend": ""})
    assert recorded_backends(empty_store.cells()) == {}
    assert backend_for(empty_store.cells(), "torch") == "torch"


def test_a_store_that_torch_filled_stays_in_torch(tmp_path: Path) -> None:
    evaluate(AGENT, rules="greedy", backend="torch", store=tmp_path, **SMALL)
    evaluate(AGENT, rules="sampled", store=tmp_path, **SMALL)
    cells = [cell for cell in Store(tmp_path).cells() if not cell.is_reference]
    assert len(cells) == 4
    assert {cell.manifest.content["backend"] for cell in cells} == {"torch"}
    with pytest.raises(StoreError, match="Use --backend torch, or another --store"):
        evaluate(AGENT, rules="sampled", backend="onnxruntime", store=tmp_path, **SMALL)


def test_both_backends_play_the_same_returns_under_other_keys(tmp_path: Path) -> None:
    for backend in ("torch", "onnxruntime"):
        evaluate(AGENT, rules="sampled,greedy", backend=backend, store=tmp_path / backend, **SMALL)
    assert np.array_equal(returns_of(tmp_path / "torch"), returns_of(tmp_path / "onnxruntime"))
    keys = [
        {cell.manifest.key for cell in Store(tmp_path / backend).cells() if not cell.is_reference}
        for backend in ("torch", "onnxruntime")
    ]
    assert not keys[0] & keys[1]


def test_a_backend_for_a_policy_that_is_not_ours_is_refused() -> None:
    with pytest.raises(UsageError, match="The backend torch cannot compute"):
        evaluate(small_policies.LinearPolicy(), rules="greedy", backend="torch", **SMALL)
