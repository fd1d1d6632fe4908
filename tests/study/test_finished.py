"""A store that holds other runs under a study's names is refused, whatever is asked about the study."""

import shutil
from pathlib import Path

import pytest

from command_line import run

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


@pytest.mark.parametrize("asked", ["preview", "status", "run"])
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
    for asked in ("preview", "status"):
        assert run(capsys, "study", asked, file, "--store", tmp_path / "store").code == 0
