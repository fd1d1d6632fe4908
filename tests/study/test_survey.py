"""What a study finds in its store: tasks that are done, and other runs under its names, which are refused."""

import shutil
from pathlib import Path

import pytest

from command_line import run
from gapfloor.records.store import Store
from gapfloor.study.graph import build_graph
from gapfloor.study.model import Study
from gapfloor.study.survey import Survey
from gapfloor.study.tasks import FloorTask, Workplace

AGENT = Path(__file__).parents[2] / "agents" / "starpilot-easy-impala-100k-s1"
STUDY = """
name = "small"
[[runs]]
games = ["starpilot"]
encoders = ["impala"]
seeds = [1]
steps = {steps}
budget = "100k"
"""


@pytest.mark.parametrize("asked", ["status", "run"])
def test_other_steps_under_the_same_label_are_refused(capsys, tmp_path, asked):
    shutil.copytree(AGENT, tmp_path / "store" / "runs" / AGENT.name)
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(steps=200_000))
    status, _, err = run(capsys, "study", asked, file, "--store", tmp_path / "store")
    assert status == 2
    assert "budget_steps is 100000 there and 200000 here" in err
    assert "another `budget` in the study file" in err


def test_the_same_steps_are_accepted(capsys, tmp_path):
    shutil.copytree(AGENT, tmp_path / "store" / "runs" / AGENT.name)
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(steps=100_000))
    assert run(capsys, "study", "status", file, "--store", tmp_path / "store").code == 0


def small_study(folder, *, test="100:104"):
    file = folder / "study.toml"
    settings = "[evaluation]\ndraws = [0]\nepisodes = 4\nslots = 4\n"
    file.write_text(f'train = "0:4"\ntest = "{test}"\n{STUDY.format(steps=100_000)}{settings}')
    return Study.read(file)


def task_of(study, kind):
    return next(task for task in build_graph(study) if isinstance(task, kind))


def test_a_floor_is_done_when_its_cells_are_there_and_not_for_other_levels(tmp_path):
    study, store = small_study(tmp_path), Store(tmp_path / "store")
    floor = task_of(study, FloorTask)
    assert not floor.is_done(Survey(study, store.root))
    store.prepare()
    floor.perform(Workplace(study, store.root))
    assert floor.is_done(Survey(study, store.root))
    other = small_study(tmp_path, test="200:204")
    assert not task_of(other, FloorTask).is_done(Survey(other, store.root))
