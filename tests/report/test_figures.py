"""Figures are described once: both renderers draw every mark of a description, and names never become markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.report.fixture_store import write_run
from tests.report.printed_results import printed_results

from gapfloor.analysis.checkpoints import Played, TrainingCurves, analyse_curve, analyse_sweep, rule_at
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity
from gapfloor.report.figures.build import build_figures, returns_figure
from gapfloor.report.figures.measurements import sweep_figure, training_curves_figure
from gapfloor.report.figures.model import FigureSpec, GuideLine, PointMark
from gapfloor.report.figures.page_figure import legend_svg, panel_svg
from gapfloor.report.figures.print_figure import draw_figure, drawing_style, save_figure, write_figures
from gapfloor.report.findings import Findings
from gapfloor.report.source import read_curves, source_of_results

pytestmark = pytest.mark.fast


RUN = RunIdentity(game="heist", mode="easy", budget="8M", agent="impala", seed=1)


def sample(mean: float) -> EpisodeSample:
    return EpisodeSample(mean + np.arange(10) % 2, np.arange(10), 1.0, 2.0, 0.2)


@pytest.fixture(scope="module")
def figures() -> dict[str, FigureSpec]:
    return {figure.name: figure for figure in build_figures(source_of_results(printed_results()))}


def render_panels(figure: FigureSpec) -> list[str]:
    return [panel_svg(panel, size=figure.size) for panel in figure.panels]


def tips(figure: FigureSpec) -> list[str]:
    found = []
    for panel in figure.panels:
        for shape in panel.shapes:
            if isinstance(shape, PointMark | GuideLine) and shape.tip:
                found.append(shape.tip)
    return found


def test_the_page_draws_every_mark_of_a_description(figures: dict[str, FigureSpec]) -> None:
    for figure in figures.values():
        drawn = [
            node.attrib["data-tip"]
            for svg in render_panels(figure)
            for node in ET.fromstring(svg).iter()
            if "data-tip" in node.attrib
        ]
        assert sorted(drawn) == sorted(tips(figure)), figure.name
        assert drawn


def test_print_draws_one_axes_per_panel_with_the_same_names(figures: dict[str, FigureSpec]) -> None:
    import matplotlib.pyplot as plt

    figure = figures["gaps"]
    drawn = draw_figure(figure)
    names = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    assert names == [words for _, words in figure.panels[0].y.ticks_shown()]
    assert len(drawn.axes) == len(figure.panels)
    plt.close(drawn)


def test_titles_and_labels_of_a_print_figure_are_inside_the_picture(paper_source, tmp_path: Path) -> None:
    import dataclasses

    import matplotlib.pyplot as plt

    found = {figure.name: figure for figure in build_figures(paper_source)}["returns"]
    panels = tuple(
        dataclasses.replace(panel, subtitle=("sampled above on 100/100", "greedy above on 99/100"))
        for panel in found.panels[:4]
    )
    figure = dataclasses.replace(found, panels=panels)
    with drawing_style():
        drawn = draw_figure(figure)
        save_figure(drawn, tmp_path, figure)
        (legend,) = drawn.legends
        drawing = drawn.canvas.get_renderer()
        for axes in drawn.axes:
            assert axes.title.get_window_extent(drawing).y1 <= drawn.bbox.height
            label = axes.xaxis.label.get_window_extent(drawing)
            assert label.y0 >= legend.get_window_extent(drawing).y1
        plt.close(drawn)


def test_names_are_text_in_both_renderers(tmp_path: Path) -> None:
    import dataclasses

    evil = "<b>$\\frac&\"'\x00\u202e"
    full = printed_results()
    rows = tuple(dataclasses.replace(row, game=evil) for row in full.floor_comparisons if row.game == "heist")
    results = dataclasses.replace(full, floor_comparisons=rows, gaps=(), screen=(), floors=())
    figure = returns_figure(Findings(results), "8M")
    assert figure is not None
    for svg in render_panels(figure):
        assert ET.fromstring(svg) is not None
    written = write_figures([figure], tmp_path)
    assert {path.suffix for path in written} == {".pdf", ".svg", ".png", ".txt"}
    drawn = next(path for path in written if path.suffix == ".svg")
    assert "".join(ET.fromstring(drawn.read_bytes()).itertext()).count("<b>$\\frac&") == 1


def test_a_sweep_has_a_gap_only_where_both_level_sets_were_played() -> None:
    floors = {"train": sample(1.0), "test": sample(2.0)}
    both, test = (
        analyse_sweep(
            [Played(RUN, rule_at(t), t, dict.fromkeys(names, sample(t))) for t in (0.0, 0.5, 1.0)],
            floors,
            design="draws",
            draws=(0,),
        )
        for names in (("train", "test"), ("test",))
    )
    assert [panel.y.label for panel in sweep_figure(both).panels] == [
        "return", "gap: train − test return", "entropy played (nats)",
    ]  # fmt: skip
    assert len(sweep_figure(test).panels) == 2
    for figure in (sweep_figure(both), sweep_figure(test)):
        assert all(ET.fromstring(svg) is not None for svg in render_panels(figure))


def test_training_curves_have_three_panels_per_run() -> None:
    played = dict.fromkeys(("train", "test"), sample(2.0))
    floors = {"train": sample(1.0), "test": sample(2.0)}
    checkpoints = [
        Played(RUN, rule, steps, played) for steps in (1000, 2000) for rule in ("sampled", "greedy")
    ]
    log = [SimpleNamespace(steps=500, episode_return=1.0, n_episodes=3, n_updates=2)]
    curve = analyse_curve(checkpoints, floors, log, name="a run")
    figure = training_curves_figure(TrainingCurves((curve, curve), "draws"))
    assert len(figure.panels) == 6
    assert [entry.words for entry in figure.legend][:2] == ["sampled", "greedy"]
    assert all(legend_svg(entry).startswith("<svg") for entry in figure.legend)


def test_blind_and_sighted_runs_are_not_pooled(tmp_path: Path) -> None:
    write_run(tmp_path, "heist", "impala", "8M", 1)
    write_run(tmp_path, "heist", "impala", "8M", 2, blind=True)
    # Logs of version 0.1 say "impala" for both.
    assert {(curve.agent, curve.n) for curve in read_curves(tmp_path)} == {("impala", 1), ("impala_blind", 1)}
