"""Figures of single results: every mean is drawn once, where its number is."""

import pyarrow as pa
import pytest

import gapfloor
from gapfloor.analysis.evaluation import Evaluation, FloorMeasurement
from gapfloor.analysis.rows import ReturnRow
from gapfloor.errors import UsageError
from gapfloor.report.figures.measurements import comparison_figure, evaluation_figure, floor_figure
from gapfloor.report.figures.model import GuideLine, PointMark
from gapfloor.tables.readable import ReadableResult

pytestmark = pytest.mark.fast


def _row(game: str, level_set: str, mean: float, *, reference: str = "", rule: str = "") -> ReturnRow:
    return ReturnRow(
        game=game, mode="easy", budget="", agent=None if reference else "mine", rule=rule, reference=reference,
        level_set=level_set, mean=mean, sem=0.1, n=1, n_episodes=32, n_draws=2, n_levels=20, seed=0, plan_hash="",
        status="exploratory",
    )  # fmt: skip


FLOOR = FloorMeasurement(
    tuple(
        _row(game, levels, mean, reference=reference)
        for game, levels, reference, mean in (
            ("maze", "train", "uniform", 3.0), ("maze", "test", "uniform", 4.0), ("maze", "test", "sticky:0.9", 5.0),
            ("heist", "test", "uniform", 1.0),
        )
    )
)  # fmt: skip


EVALUATION = Evaluation(
    (),
    (
        _row("maze", "train", 3.0, reference="uniform"), _row("maze", "test", 3.5, reference="uniform"),
        _row("maze", "train", 6.0, rule="sampled"), _row("maze", "test", 5.0, rule="sampled"),
    ),
    (),
    (),
)  # fmt: skip


def _heights(panel) -> list[float]:
    return [shape.y for shape in panel.shapes if isinstance(shape, PointMark)]


def test_a_floor_has_a_panel_per_game_and_a_mark_per_row() -> None:
    panels = floor_figure(FLOOR).panels
    assert [panel.title for panel in panels] == ["maze", "heist"]
    assert _heights(panels[0]) == [3.0, 4.0, 5.0]


def test_an_evaluation_shows_the_floor_of_both_level_sets_and_the_agent() -> None:
    (panel,) = evaluation_figure(EVALUATION).panels
    assert _heights(panel) == [6.0, 5.0]
    assert [shape.at for shape in panel.shapes if isinstance(shape, GuideLine)] == [3.0, 3.5]


def test_a_comparison_has_a_row_per_quantity_with_its_interval() -> None:
    rows = [
        {
            "game": "heist", "agent": agent, "seed": seed, "rule": "sampled", "level_set": levels,
            "episode_return": mean + seed + episode,
        }
        for agent, mean in (("a", 6.0), ("b", 3.0))
        for seed in range(3)
        for levels in ("train", "test")
        for episode in range(4)
    ]  # fmt: skip
    found = gapfloor.compare(pa.Table.from_pylist(rows), agents=("a", "b"))
    (panel,) = comparison_figure(found).panels
    marks = [shape for shape in panel.shapes if isinstance(shape, PointMark)]
    assert [mark.x for mark in marks] == [row.difference.value for row in found.rows]
    assert found.plot().axes[0].get_xlabel() == "a − b, return"


def test_plot_gives_a_matplotlib_figure() -> None:
    figure = FLOOR.plot()
    assert [axes.get_title() for axes in figure.axes] == ["maze", "heist"]


def test_rows_become_columns_and_intervals_two_of_them() -> None:
    table = FLOOR.to_arrow()
    assert table["mean"].to_pylist() == [3.0, 4.0, 5.0, 1.0]
    assert table["n_draws"].to_pylist()[0] == 2
    assert FLOOR.to_pandas()["reference"].tolist()[2] == "sticky:0.9"


def test_a_table_that_a_result_does_not_have_is_named() -> None:
    with pytest.raises(UsageError, match="Unknown table of rows 'floor': did you mean floors"):
        FLOOR.to_arrow("floor")


def test_a_result_without_a_figure_says_so() -> None:
    with pytest.raises(UsageError, match="There is no figure of a ReadableResult"):
        ReadableResult().plot()
