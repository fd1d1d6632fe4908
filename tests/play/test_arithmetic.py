"""Cells of two kinds of arithmetic are never mixed under one key."""

import os
import subprocess
import sys

import numpy as np
import pytest

import small_stores
from gapfloor.engines.registry import make_spec
from gapfloor.errors import StoreError
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.campaign import refuse_other_arithmetic
from gapfloor.play.candidate import arithmetic_of
from gapfloor.play.cell import CellSpec, Inference, Run
from gapfloor.records.store import Store

CODE = """
import numpy as np
from gapfloor.play.candidate import arithmetic_of
from gapfloor.policies.checkpoint import load_random_weights

policy = load_random_weights("random-weights:impala:1", backend="torch")
batch = np.random.default_rng(0).integers(0, 256, (16, 64, 64, 3), dtype=np.uint8)
print(arithmetic_of(policy.logits(batch)))
"""


def arithmetic_in(**variables):
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=os.environ | variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_other_vector_instructions_of_a_library_give_another_hash_and_the_same_ones_the_same():
    here = arithmetic_in()
    assert arithmetic_in() == here
    assert arithmetic_in(ONEDNN_MAX_CPU_ISA="SSE41") != here


@pytest.mark.fast
def test_the_last_bit_of_one_logit_changes_the_hash():
    logits = np.random.default_rng(0).normal(size=(16, 15)).astype(np.float32)
    other = logits.copy()
    other[3, 4] = np.nextafter(other[3, 4], np.float32(9))
    assert arithmetic_of(logits) != arithmetic_of(other)


def spec(**inference):
    return CellSpec(
        engine=make_spec("coinrun"),
        run=Run("impala", 1, "8M"),
        policy="abc",
        rule="sampled",
        level_set="train",
        levels=LevelSet(0, 200),
        draw=0,
        inference=Inference(**inference),
    )


@pytest.mark.parametrize("part", ["backend", "backend_version", "device", "arithmetic"])
def test_everything_that_computes_logits_is_part_of_the_key(part):
    assert spec(**{part: "a"}).key != spec(**{part: "b"}).key


def test_cells_of_another_machine_are_refused_before_play(empty_store):
    content = {
        "policy": "abc",
        "batch": 16,
        "arithmetic": "there",
        "backend": "torch",
        "backend_version": "2",
    }
    small_stores.write_cell(empty_store, content=content)
    with pytest.raises(StoreError, match=r"another arithmetic \(torch 2\) than this machine has"):
        refuse_other_arithmetic(empty_store.cells(), spec(batch=16, arithmetic="here"))
    refuse_other_arithmetic(empty_store.cells(), spec(batch=16, arithmetic="there"))


@pytest.mark.fast
def test_a_store_that_two_machines_filled_at_once_is_not_analysed(empty_store):
    for name, arithmetic in (("a", "one"), ("b", "two")):
        content = {"policy": "abc", "batch": 16, "arithmetic": arithmetic}
        small_stores.write_cell(empty_store, name, content=content, draw=int(name == "b"))
    with pytest.raises(StoreError, match="two kinds of arithmetic"):
        Store(empty_store.root).episodes()


@pytest.mark.fast
def test_one_policy_in_two_games_is_not_taken_for_two_machines(empty_store):
    for game, arithmetic in (("maze", "one"), ("heist", "two")):
        content = {"policy": "abc", "batch": 16, "arithmetic": arithmetic, "game": game}
        small_stores.write_cell(empty_store, game, content=content, game=game)
    assert Store(empty_store.root).episodes().num_rows == 4
