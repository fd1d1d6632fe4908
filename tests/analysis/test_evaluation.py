"""An evaluation and an analysis of the same cells say the same, and an evaluation says what it is about."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.analysis.evaluation import reference_rows, summarise_evaluation
from gapfloor.analysis.known_floors import shipped_procgen_floor
from gapfloor.statistics.conventions import THESE_RUNS
from small_stores import write_cell

pytestmark = pytest.mark.fast

EPISODES = 12


def fill(store, *, seeds=(1, 2, 3), networks=(), census=False):
    """Cells of one agent and of the floor on both level sets; `networks` are seeds of a stricter reference."""
    rng = np.random.default_rng(3)
    who = [{"seed": seed} for seed in seeds]
    who.append({"agent": "", "seed": None, "budget": "", "reference": "uniform", "rule": "uniform"})
    who += [
        {"agent": "", "seed": seed, "budget": "", "reference": "random-weights:x", "rule": "greedy"}
        for seed in networks
    ]
    number = 0
    for labels in who:
        for level_set, first in (("train", 0), ("test", 1000)):
            for draw in (0,) if census else (0, 1):
                number += 1
                levels = first + (np.repeat(np.arange(4), 3) if census else rng.integers(0, 5, EPISODES))
                returns = rng.integers(0, 9, EPISODES) + (0 if labels.get("reference") else 4)
                columns = {
                    "slot": list(range(EPISODES)), "index": [1] * EPISODES, "level_seed": levels.tolist(),
                    "episode_return": returns.astype(float).tolist(), "length": [5] * EPISODES,
                }  # fmt: skip
                content = {"levels": f"{first}:{first + 5}", "engine": "procgen"} | (
                    {"repeats": 3} if census else {}
                )
                write_cell(
                    store, f"cell{number}", content={**content, "policy": str(labels)},
                    columns=columns, level_set=level_set, draw=draw, **labels,
                )  # fmt: skip
    return store.cells()


def parts(cells):
    floors = [cell for cell in cells if cell.manifest.labels["reference"] == "uniform"]
    references = [cell for cell in cells if cell.manifest.labels["reference"] not in ("", "uniform")]
    runs = [cell for cell in cells if not cell.is_reference]
    return {"floors": floors, "cells": runs, "references": references, "deterministic_rules": ("greedy",)}


@pytest.mark.parametrize("census", [False, True])
def test_an_evaluation_has_the_rows_of_an_analysis_agent_by_agent(empty_store, census):
    found = summarise_evaluation(**parts(fill(empty_store, networks=(1, 2), census=census)))
    analysed = analyse(empty_store)
    assert found.floor_comparisons == analysed.agent_floor_comparisons
    pooled = [
        dataclasses.replace(row, agent="mine", seed=0, decision=None)
        for row in analysed.reference_comparisons
    ]
    assert pooled == [
        dataclasses.replace(row, agent="mine", seed=0, decision=None) for row in found.reference_comparisons
    ]
    (gap,), (pooled_gap,) = found.gaps, analysed.gaps
    assert (gap.gap, gap.gap_sem, gap.floor_gap) == (pooled_gap.gap, pooled_gap.gap_sem, pooled_gap.floor_gap)
    assert (gap.estimate, gap.decision.call) == (pooled_gap.estimate, pooled_gap.decision.call)
    floors = {row.level_set: (row.mean, row.sem) for row in analysed.floors if row.reference == "uniform"}
    played = {row.level_set: (row.mean, row.sem) for row in found.returns if row.reference == "uniform"}
    assert played == floors


def test_one_checkpoint_is_not_tested_and_says_so(empty_store):
    found = summarise_evaluation(**parts(fill(empty_store, seeds=(1,))))
    assert {(row.n, row.decision.label) for row in found.floor_comparisons} == {(1, "not tested (1 run)")}
    assert {row.delta.estimand for row in found.floor_comparisons} == {THESE_RUNS}
    assert all(math.isfinite(row.delta.low) for row in found.floor_comparisons)
    assert [note for note in found.notes if note.startswith("1 run: ")]
    assert math.isfinite(found.gaps[0].gap_sem)


def test_a_deterministic_rule_leaves_no_error_in_a_census(empty_store):
    given = parts(fill(empty_store, seeds=(1,), census=True))
    assert all(row.sem > 0 for row in summarise_evaluation(**given).returns)
    exact = summarise_evaluation(**{**given, "deterministic_rules": ("sampled",)}).returns
    assert {row.sem for row in exact if row.agent} == {0.0}


def test_several_networks_are_the_units_of_a_references_error(empty_store):
    cells = fill(empty_store, networks=(1, 2, 3))
    wanted = [cell for cell in cells if cell.manifest.labels["reference"] == "random-weights:x"]
    rows = reference_rows(cells=wanted, deterministic_rules=("greedy",))
    analysed = {
        row.level_set: row for row in analyse(empty_store).floors if row.reference == "random-weights:x"
    }
    assert [(row.level_set, row.n_networks, row.n_draws) for row in rows] == [
        ("train", 3, 2),
        ("test", 3, 2),
    ]
    for row in rows:
        assert (row.mean, row.sem) == (analysed[row.level_set].mean, analysed[row.level_set].sem)


def test_only_the_uniform_floor_of_procgen_is_known(empty_store):
    (row, _) = reference_rows(cells=parts(fill(empty_store))["floors"], deterministic_rules=())
    assert not any(
        shipped_procgen_floor(row, key) for key in ("measured", "paper")
    )  # levels 0:5 were never published
    paper = dataclasses.replace(row, levels="1000:1100", level_set="test")
    assert shipped_procgen_floor(paper, "paper")
    assert not shipped_procgen_floor(dataclasses.replace(paper, reference="constant:4"), "paper")
