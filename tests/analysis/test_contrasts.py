"""Sweeps and training curves from samples whose answers are known."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from gapfloor.analysis.checkpoints import Played, analyse_curve, analyse_sweep, rule_at
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity

pytestmark = pytest.mark.fast

LEVELS = np.arange(8)


def sample(mean, *, entropy=1.0, share=0.2):
    return EpisodeSample(mean + (LEVELS % 2) * 1.0, LEVELS, entropy, entropy, share)


def test_return_that_rises_with_entropy_rises_at_every_step():
    grid = (0.0, 0.5, 1.0)
    run = RunIdentity(game="heist", mode="easy", agent="mine", seed=1)
    played = [
        Played(
            run,
            rule_at(value),
            value,
            {name: sample(shift + value, entropy=value) for name, shift in (("train", 2.0), ("test", 1.0))},
        )
        for value in grid
    ]
    found = analyse_sweep(
        played,
        {"train": sample(0.0), "test": sample(0.0)},
        design="census",
        draws=[0],
    )
    assert [row.rule for row in found.on("train")] == [rule_at(value) for value in grid]
    said = [line for line in found.sentences() if "sampled - greedy" in line]
    assert len(said) == 2
    for line in said:
        assert "return falls at every step as entropy falls. sampled - greedy: +1.00 [" in line
    assert {gap.gap for gap in found.gaps} == {gap.estimate.value for gap in found.gaps} == {1.0}
    rows = [*found.floor_comparisons, *found.gaps]
    assert {(row.n, row.decision.call) for row in rows} == {(1, "not tested")}
    assert [row.at for row in found.gaps] == list(grid)
    assert json.loads(json.dumps(found.to_dict()))["run"]["agent"] == "mine"


def test_a_curve_has_the_gaps_of_its_checkpoints_and_the_logged_means_next_to_them():
    checkpoints = [
        Played(
            RunIdentity(game="heist", mode="easy", agent="mine"),
            "sampled",
            steps,
            {"train": sample(train), "test": sample(test)},
        )
        for steps, train, test in ((100, 5.0, 4.0), (200, 3.0, 1.0))
    ]
    log = [SimpleNamespace(steps=200, episode_return=4.5, n_episodes=10, n_updates=3)]
    floors = {"train": sample(0.0), "test": sample(0.0)}
    curve = analyse_curve(checkpoints, floors, log, name="run")
    assert [(row.at, row.gap) for row in curve.gaps] == [(100, 1.0), (200, 2.0)]
    deltas = [row.delta.value for row in curve.floor_comparisons if row.level_set == "test"]
    assert deltas == [4.0, 1.0]
    (in_loop,) = curve.in_loop
    assert (in_loop.steps, in_loop.difference) == (200, 1.0)
