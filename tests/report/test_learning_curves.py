"""Learning curves of experiment trackers, read from what the trackers write."""

import math

import numpy as np
import pytest

from gapfloor.errors import UsageError
from gapfloor.report.learning_curves import read_learning_curves


def write_events(folder, values, *, tag="rollout/ep_rew_mean"):
    writer_type = pytest.importorskip("torch.utils.tensorboard").SummaryWriter
    writer = writer_type(str(folder))
    for step, value in values:
        writer.add_scalar(tag, value, step)
    writer.close()


def test_seeds_in_event_files_become_one_mean_with_its_error(tmp_path):
    write_events(tmp_path / "PPO_1", [(0, 0.0), (100, 10.0)])
    write_events(tmp_path / "PPO_2", [(0, 2.0), (50, 7.0), (100, 12.0)])
    (curve,) = read_learning_curves([f"gym:CartPole-v1,ppo={tmp_path}"])
    assert (curve.game, curve.agent, curve.n) == ("gym:CartPole-v1", "ppo", 2)
    assert curve.steps[0] == 0
    assert curve.steps[-1] == 100
    np.testing.assert_allclose(curve.mean, 1 + np.array(curve.steps) / 10)
    np.testing.assert_allclose(curve.sem, 1.0)


@pytest.mark.parametrize(
    "header", ["Wall time,Step,Value", "global_step,charts/episodic_return", "\ufeffStep,Reward"]
)
def test_csv_exports_of_several_trackers_are_read_as_they_are(tmp_path, header):
    columns = header.lstrip("\ufeff").count(",")
    lines = [",".join([*["1"] * (columns - 1), str(step), str(step / 2)]) for step in (0, 10, 20)]
    (tmp_path / "seed1.csv").write_text("\n".join([header, *lines]), encoding="utf-8")
    (curve,) = read_learning_curves([f"coinrun={tmp_path}"])
    assert curve.mean[-1] == 10.0
    assert math.isnan(curve.sem[0])
    assert curve.n == 1


def test_a_curve_ends_where_the_shortest_seed_ends_and_skips_what_is_not_a_number(tmp_path):
    (tmp_path / "a.csv").write_text("step,value\n0,0\n10,nan\n20,2\n")
    (tmp_path / "b.csv").write_text("step,value\n5,1\n10,1\n")
    (curve,) = read_learning_curves([f"coinrun={tmp_path}"])
    assert (curve.steps[0], curve.steps[-1]) == (5.0, 10.0)
    assert curve.mean[-1] == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step,value\n0,x\n1,2\n", "not a number"),
        ("time,loss\n0,1\n", "it needs a step"),
        ("step,value\n0,1\n", "no training steps in common"),
        ("", "has the columns none"),
    ],
)
def test_a_file_that_cannot_be_a_curve_is_one_sentence(tmp_path, text, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_learning_curves([f"coinrun={tmp_path}"])


@pytest.mark.parametrize("source", ["coinrun", "=folder", "coinrun="])
def test_a_source_without_a_game_or_folder_is_refused(source):
    with pytest.raises(UsageError, match="write GAME=FOLDER"):
        read_learning_curves([source])


def test_a_scalar_that_was_never_logged_is_named(tmp_path):
    write_events(tmp_path, [(0, 0.0), (1, 1.0)], tag="loss")
    with pytest.raises(UsageError, match="--curve-tag"):
        read_learning_curves([f"coinrun={tmp_path}"])
    (curve,) = read_learning_curves([f"coinrun={tmp_path}"], tag="loss")
    assert curve.mean[-1] == 1.0


def test_the_figure_names_a_floor_only_where_it_draws_one(tmp_path):
    from gapfloor.report.figures.learning import learning_figure
    from gapfloor.report.source import load_report_source

    table = tmp_path / "episodes.csv"
    lines = [
        f"coinrun,{agent},{seed},{rule},{level_set},{episode}"
        for agent, rule in (("ppo", "sampled"), ("random", "uniform"))
        for seed in range(3)
        for level_set in ("train", "test")
        for episode in range(4)
    ]
    table.write_text("\n".join(["game,agent,seed,rule,level_set,episode_return", *lines]))
    findings = load_report_source(table).findings
    (tmp_path / "seed.csv").write_text("step,value\n0,0\n10,1\n")
    for game, has_floor in (("coinrun", True), ("heist", False)):
        figure = learning_figure(findings, read_learning_curves([f"{game}={tmp_path / 'seed.csv'}"]))
        assert ("floor" in figure.caption) is has_floor
        assert any(entry.guide == "floor" for entry in figure.legend) is has_floor
