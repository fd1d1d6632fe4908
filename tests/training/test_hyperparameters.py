"""The paper's table, the number of updates, run names and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapfloor.errors import StoreError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.training.spec import Hyperparameters, TrainingSpec, budget_label

pytestmark = pytest.mark.fast


def test_defaults_are_the_papers_table() -> None:
    hyper = Hyperparameters()
    assert (hyper.environments, hyper.rollout_length, hyper.minibatches, hyper.epochs) == (16, 256, 8, 3)
    assert (hyper.learning_rate, hyper.discount, hyper.gae_lambda) == (5e-4, 0.999, 0.95)
    assert (hyper.clip, hyper.entropy_coefficient, hyper.value_coefficient) == (0.2, 0.01, 0.5)
    assert (hyper.max_gradient_norm, hyper.adam_epsilon, hyper.to_dict()["rewards"]) == (0.5, 1e-5, "raw")


@pytest.mark.parametrize(
    ("environments", "steps", "updates"), [(16, 8_000_000, 1953), (256, 25_000_000, 381)]
)
def test_updates_are_whole_rollouts_in_the_budget(environments: int, steps: int, updates: int) -> None:
    assert Hyperparameters(environments=environments).n_updates(steps) == updates


@pytest.mark.parametrize(
    ("environments", "piece"), [(1, 1), (2, 1), (16, 8), (64, 32), (256, 32), (12, 6), (7, 1)]
)
def test_inference_pieces_divide_the_environments(environments: int, piece: int) -> None:
    assert Hyperparameters(environments=environments).inference_batch == piece


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environments": 0}, "`environments` is 0: it must be at least 1"),
        ({"learning_rate": float("nan")}, "`learning_rate` is nan: it must be greater than 0"),
        ({"discount": 1.5}, "`discount` is 1.5: it must be between 0 and 1"),
        ({"entropy_coefficient": -1.0}, "`entropy_coefficient` is -1.0: it must be 0 or more"),
        ({"environments": 3, "rollout_length": 5}, "3 environments x 5 steps make 15 samples"),
        ({"inference_batch": 5}, "inference_batch is 5: it must divide the 16 environments"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Hyperparameters(**changes)  # type: ignore[arg-type]


def test_hyperparameters_survive_a_header() -> None:
    hyper = Hyperparameters(environments=64, precision="bf16")
    recorded = hyper.to_dict()
    assert recorded.pop("rewards") == "raw"
    assert Hyperparameters(**recorded) == hyper


@pytest.mark.parametrize(
    ("steps", "label"), [(8_000_000, "8M"), (25_000_000, "25M"), (100_000, "100k"), (4096, "4096")]
)
def test_budgets_are_labelled_as_tables_write_them(steps: int, label: str) -> None:
    assert budget_label(steps) == label


def test_runs_are_named_by_what_they_are() -> None:
    spec = TrainingSpec(game="heist", encoder="fpn", seed=3, steps=25_000_000, mode="hard", budget="long")
    assert spec.run == "heist-hard-fpn-long-s3"
    assert str(spec.levels) == "0:200"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"game": "starpilt"}, "Unknown game 'starpilt': did you mean starpilot"),
        ({"encoder": "fpnn"}, "Unknown encoder 'fpnn': did you mean fpn"),
        ({"mode": "memory"}, "starpilot has no memory mode"),
        ({"seed": -1}, "The seed is -1"),
        ({"steps": 100}, "100 steps are fewer than one rollout of 4096"),
        ({"budget": "8M/x"}, "The budget label is '8M/x'"),
    ],
)
def test_a_run_that_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    values: dict[str, object] = {"game": "starpilot", "encoder": "impala", "seed": 1, "steps": 8192}
    with pytest.raises(UsageError, match=message):
        TrainingSpec(**(values | changes))  # type: ignore[arg-type]


def test_differences_between_runs_are_named_with_both_values() -> None:
    one = TrainingSpec(game="heist", encoder="fpn", seed=3, steps=8192)
    other = TrainingSpec(
        game="heist", encoder="fpn", seed=3, steps=8192, levels=LevelSet(0, 100),
        hyperparameters=Hyperparameters(epochs=2),
    )  # fmt: skip
    one.refuse_other(one.to_dict() | {"steps": 4096}, Path("run"))
    words = "levels is 0:200 there and 0:100 here, epochs is 3 there and 2 here"
    with pytest.raises(StoreError, match=f"^run belongs to another run of this name: {words}. Give another"):
        other.refuse_other(one.to_dict(), Path("run"))
