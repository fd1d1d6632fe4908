"""Agents that come later: a study does what it can without them and says which are not there."""

import shutil
from pathlib import Path

import pytest

from command_line import run
from gapfloor.errors import UsageError
from gapfloor.study.graph import build_graph
from gapfloor.study.model import Study

AGENTS = Path(__file__).parents[2] / "agents"
STUDY = """
name = "small"
train = "0:4"
test = "100:104"
replays = 0
references = ["uniform"]

[[runs]]
games = ["starpilot", "fruitbot"]
encoders = ["impala"]
seeds = [1]
steps = 100_000
budget = "100k"
checkpoints = "agents"

[evaluation]
rules = ["greedy"]
draws = [0]
episodes = 4
slots = 4
probe = 0
"""


@pytest.fixture
def study(tmp_path):
    """A study of two agents, of which one is there."""
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    name = "starpilot-easy-impala-100k-s1"
    shutil.copytree(AGENTS / name, tmp_path / "agents" / name)
    return path


def test_what_can_be_done_is_done_and_the_missing_agent_is_named(study, capsys):
    store = study.parent / "store"
    first = run(capsys, "study", "run", study, "--store", store, "--workers", "1")
    assert first.code == 1
    missing = "The checkpoint of fruitbot-easy-impala-100k-s1 is not in agents: add it."
    assert missing in first.err
    assert len(list(store.glob("cells/*-greedy-*.parquet"))) == 2
    assert not (store / "report").exists()
    status = run(capsys, "study", "status", study, "--store", store)
    assert missing in status.out
    shutil.copytree(
        AGENTS / "fruitbot-easy-impala-100k-s1", study.parent / "agents" / "fruitbot-easy-impala-100k-s1"
    )
    again = run(capsys, "study", "run", study, "--store", store, "--workers", "1")
    assert again.code == 0, again.err
    assert (store / "report" / "index.html").is_file()


@pytest.mark.fast
def test_a_folder_without_any_of_the_agents_is_refused(study):
    shutil.rmtree(study.parent / "agents")
    with pytest.raises(UsageError, match="is missing from agents, and so are all others"):
        Study.read(study)


@pytest.mark.fast
def test_a_reference_by_game_is_left_out_where_its_run_does_not_exist(study):
    text = study.read_text().replace('["uniform"]', '["uniform", "blind:agents/{game}-easy-impala-100k-s1"]')
    study.write_text(text)
    floors = [task.name for task in build_graph(Study.read(study)) if task.kind == "floor"]
    assert [name for name in floors if "blind" in name] == [
        "floor starpilot blind:agents/{game}-easy-impala-100k-s1"
    ]


@pytest.mark.fast
def test_a_reference_that_exists_for_no_game_is_refused(study):
    text = study.read_text().replace('["uniform"]', '["uniform", "blind:agents/{game}-gone"]')
    study.write_text(text)
    with pytest.raises(UsageError, match="exists for none of the games"):
        Study.read(study)


@pytest.mark.fast
def test_cka_is_a_task_per_game_before_the_report(study):
    study.write_text(study.read_text().replace("replays = 0", "replays = 0\ncka = true"))
    tasks = {task.name: task for task in build_graph(Study.read(study))}
    assert tasks["cka starpilot"].needs == ("train starpilot-easy-impala-100k-s1",)
    assert "cka starpilot" in tasks["report"].needs
