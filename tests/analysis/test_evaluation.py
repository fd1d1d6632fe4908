"""An evaluation and an analysis of the same cells say the same, and an evaluation says what it is about."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from gapfloor.analysis import analyse
from gapfloor.analysis.evaluation import reference_rows, summarise_evaluation
from gapfloor.analysis.known_floors import shipped_procgen_floor
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
def test_an_evaluation_and_an_analysis_of_the_same_cells_agree(empty_store, census):
    found = summarise_evaluation(**parts(fill(empty_store, census=census)))
    analysed = analyse(empty_store)
    for row in found.comparisons:
        (same,) = [r for r in analysed.floor_comparisons if r.level_set == row.level_set]
        assert (row.scope, row.decision.call) == ("runs", same.decision.call)
        assert (row.test.delta, row.test.p, row.test.p_tost) == (
            same.test.delta,
            same.test.p,
            same.test.p_tost,
        )
    (gap,), (same_gap,) = found.gap, analysed.gaps
    assert gap.gap == pytest.approx(same_gap.gap.mean)
    assert gap.floor_gap == same_gap.floor_gap
    if not census:
        assert gap.sem == pytest.approx(same_gap.gap.sem)
    floors = {row.level_set: (row.mean, row.sem) for row in analysed.floors}
    assert {row.level_set: (row.mean, row.sem) for row in found.summary if not row.agent} == floors


def test_one_checkpoint_is_compared_by_its_episodes_and_says_so(empty_store):
    found = summarise_evaluation(**parts(fill(empty_store, seeds=(1,))))
    assert {row.scope for row in found.comparisons} == {"this checkpoint only"}
    assert {row.test.n for row in found.comparisons} == {2 * EPISODES}
    assert [note for note in found.notes if note.startswith("1 run: ")]
    assert math.isfinite(found.gap[0].sem)


def test_a_deterministic_rule_leaves_no_error_in_a_census(empty_store):
    given = parts(fill(empty_store, seeds=(1,), census=True))
    assert all(row.sem > 0 for row in summarise_evaluation(**given).summary)
    exact = summarise_evaluation(**{**given, "deterministic_rules": ("sampled",)}).summary
    assert {row.sem for row in exact if row.agent} == {0.0}


def test_several_networks_are_the_units_of_a_references_error(empty_store):
    cells = fill(empty_store, networks=(1, 2, 3))
    wanted = [cell for cell in cells if cell.manifest.labels["reference"] == "random-weights:x"]
    rows = reference_rows(cells=wanted, deterministic_rules=("greedy",))
    analysed = {
        row.level_set: row for row in analyse(empty_store).floors if row.reference == "random-weights:x"
    }
    assert [(row.level_set, row.n_networks, row.draws) for row in rows] == [
        ("train", 3, (0, 1)),
        ("test", 3, (0, 1)),
    ]
    for row in rows:
        assert (row.mean, row.sem) == (analysed[row.level_set].mean, analysed[row.level_set].sem)


def test_the_json_rows_keep_the_names_of_their_tests(empty_store):
    document = summarise_evaluation(**parts(fill(empty_store, networks=(1, 2)))).to_dict()
    assert {"scope", "delta", "p", "p_holm", "call"} <= set(document["comparisons"][0])
    assert {"reference", "mean", "sem", "n_episodes", "n_networks", "above"} <= set(document["references"][0])


def test_only_the_uniform_floor_of_procgen_is_known(empty_store):
    (row, _) = reference_rows(cells=parts(fill(empty_store))["floors"], deterministic_rules=())
    assert shipped_procgen_floor(row) is None  # levels 0:5 were never published
    paper = dataclasses.replace(row, levels="1000:1100", level_set="test")
    assert shipped_procgen_floor(paper).paper is not None
    assert shipped_procgen_floor(dataclasses.replace(paper, reference="constant:4")) is None
