from pathlib import Path

import pytest

from gapfloor.errors import UsageError
from gapfloor.study.costs import estimate
from gapfloor.study.graph import build_graph
from gapfloor.study.model import read_study

pytestmark = pytest.mark.fast
STUDIES = Path(__file__).parents[2] / "studies"

GOOD = """
name = "small"
[[runs]]
games = ["starpilot"]
encoders = ["impala"]
seeds = [1, 2]
steps = 8192
"""


def study_of(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text)
    return read_study(path)


@pytest.mark.parametrize(
    ("name", "runs", "cells", "addendum"), [("paper-8m", 48, 576, 288), ("paper-25m", 36, 432, 0)]
)
def test_the_papers_studies_have_the_papers_size(name, runs, cells, addendum):
    size = estimate(read_study(STUDIES / f"{name}.toml"))
    assert (size.n_runs, size.n_cells, size.n_addendum_cells) == (runs, cells, addendum)


def test_the_papers_updates_are_1953_and_381():
    updates = {
        spec.n_updates
        for name in ("paper-8m", "paper-25m")
        for _, spec in read_study(STUDIES / f"{name}.toml").training_specs()
    }
    assert updates == {1953, 381}


def test_every_task_comes_after_those_it_needs(tmp_path):
    seen = set()
    for task in build_graph(study_of(tmp_path, GOOD)):
        assert set(task.needs) <= seen
        assert task.name not in seen
        seen.add(task.name)
    assert "report" in seen


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("starpilot", "starpilt"), "did you mean starpilot"),
        (("8192", "0"), "fewer than one rollout"),
        (("impala", "impalla"), "did you mean"),
        (("seeds = [1, 2]", "seeds = [1, 1]"), "names the run starpilot-easy-impala-8192-s1 twice"),
        (("seeds = [1, 2]", "seeds = []"), "without encoders or seeds"),
        (("steps", "stepps"), "has no setting 'stepps': did you mean steps"),
        (("seeds = [1, 2]", 'seeds = ["a"]'), "must be a whole number"),
        (('name = "small"', 'name = "small"\nplan = "gone.toml"'), "names the plan gone.toml"),
        (('name = "small"', 'name = "small"\nreferences = ["constant:3"]'), "leaves out the reference uniform"),
        (('name = "small"', 'name = "small"\n[evaluation]\nrules = ["sampld"]'), "did you mean sampled"),
        (('name = "small"', 'name = "small"\n[evaluation]\nepisodes = 100'), "cannot be shared equally"),
        (('name = "small"', 'name = "small"\n[addendum]\nrules = ["greedy"]'), "name it once"),
        (('steps = 8192', 'steps = 8192\ncheckpoints = "agents"'), "is missing from agents"),
        (("[[runs]]", "[[runs]"), "is not valid TOML"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_study_is_one_sentence(tmp_path, change, words):
    with pytest.raises(UsageError, match=words):
        study_of(tmp_path, GOOD.replace(*change))
