from pathlib import Path

import pytest

from gapfloor.errors import UsageError
from gapfloor.records.store import Store
from gapfloor.study.graph import build_graph, estimate
from gapfloor.study.model import Study
from gapfloor.study.survey import report_digest

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
    return Study.read(path)


@pytest.mark.parametrize(
    ("name", "runs", "cells", "addendum"), [("paper-8m", 48, 576, 288), ("paper-25m", 36, 432, 0)]
)
def test_the_papers_studies_have_the_papers_size(name, runs, cells, addendum):
    size = estimate(Study.read(STUDIES / f"{name}.toml"))
    assert (size.n_runs, size.n_cells, size.n_addendum_cells) == (runs, cells, addendum)


def test_no_number_of_cores_makes_a_study_shorter_than_its_longest_run():
    size = estimate(study := Study.read(STUDIES / "paper-8m.toml"))
    longest = max(task.seconds(study) for task in build_graph(study) if task.kind == "train")
    assert size.seconds_on(1) == sum(size.core_seconds.values())
    assert size.seconds_on(2) == sum(size.core_seconds.values()) / 2
    assert size.seconds_on(10_000) == size.longest_chain > longest


def test_the_papers_updates_are_1953_and_381():
    updates = {
        spec.n_updates
        for name in ("paper-8m", "paper-25m")
        for _, spec in Study.read(STUDIES / f"{name}.toml").training_specs()
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
        (("seeds = [1, 2]", "seeds = [1, 1]"), "The run starpilot-easy-impala-8192-s1 is named twice"),
        (("seeds = [1, 2]", "seeds = []"), "has no encoders or no seeds"),
        (("steps", "stepps"), "has no setting 'stepps': did you mean steps"),
        (("seeds = [1, 2]", 'seeds = ["a"]'), "must be a whole number"),
        (('name = "small"', 'name = "small"\nplan = "gone.toml"'), "There is no plan gone.toml"),
        (('name = "small"', 'name = "small"\nreferences = ["constant:3"]'), "The reference uniform is left out"),
        (('name = "small"', 'name = "small"\n[evaluation]\nrules = ["sampld"]'), "did you mean sampled"),
        (('name = "small"', 'name = "small"\n[addendum]\nrules = ["greedy"]'), "name it once"),
        (('steps = 8192', 'steps = 8192\ncheckpoints = "agents"'), "is missing from agents"),
        (("[[runs]]", "[[runs]"), "is not valid TOML"),
        (('name = "small"', 'name = "small"\n[evaluation]\nrules = []'), "study.toml: evaluation.rules is empty"),
        (('name = "small"', 'name = "small"\n[evaluation]\nepisodes = 100'), "study.toml: episodes is 100.*equally"),
        (('name = "small"', 'name = "small"\n[evaluation]\nslots = 0'), "slots is 0: use at least 1"),
        (('name = "small"', 'name = "small"\n[evaluation]\nburn_in = -1'), "burn_in is -1: use 0 or more"),
        (('name = "small"', 'name = "small"\n[evaluation]\ndraws = []'), "e.g. draws 0, 1 and 2"),
        (('name = "small"', 'name = "small"\ntrain = "none"\ntest = "none"'), "e.g. 1000:1100 for test"),
        (('name = "small"', 'name = "small"\ntrain = "0:x"'), "^study.toml: "),
    ],
)  # fmt: skip
def test_a_mistake_in_a_study_is_one_sentence(tmp_path, change, words):
    with pytest.raises(UsageError, match=words):
        study_of(tmp_path, GOOD.replace(*change))


def test_no_message_about_a_study_file_names_an_option_of_the_command_line(tmp_path):
    for setting in ("episodes = 0", "episodes = 100", "repeats = 0", "draws = []", "slots = 0", "batch = 0"):
        design = '\ndesign = "census"' if "repeats" in setting else ""
        with pytest.raises(UsageError) as caught:
            study_of(tmp_path, GOOD + f"[evaluation]\n{setting}{design}\n")
        assert setting.split()[0] in f"{caught.value}s"  # "No draw is named"
        assert "--" not in str(caught.value)


@pytest.mark.parametrize("name", ["plan.toml", "plan[1].toml", "plans/plan*.toml"])
@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_changed_plan_or_lock_changes_the_digest_whatever_its_name(tmp_path, name, is_absolute):
    plan = tmp_path / name
    plan.parent.mkdir(exist_ok=True)
    seen = set()
    for path in (plan, plan, plan.with_suffix(".lock")):
        path.write_text(f"{len(seen)}")
        named = plan if is_absolute else name
        study = study_of(tmp_path, f'plan = "{named}"\n{GOOD}')
        seen.add(report_digest(study, Store(tmp_path / "store")))
    assert len(seen) == 3
