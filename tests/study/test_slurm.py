"""Settings of SLURM; `tests/study/test_whole_study.py` runs a whole study through submitit's local executor."""

import pytest

from gapfloor.errors import UsageError
from gapfloor.study.executors import StudyAssignment
from gapfloor.study.slurm import SlurmExecutor, parse_settings

pytest.importorskip("submitit")


def test_names_of_slurm_get_their_prefix_and_those_of_submitit_stay() -> None:
    assert parse_settings("partition=cpu,slurm_account=lab,mem_gb=4") == {
        "slurm_partition": "cpu",
        "slurm_account": "lab",
        "mem_gb": 4,
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("partition", "write NAME=VALUE"),
        ("=3", "write NAME=VALUE"),
        ("partition=cpu", "SLURM cannot be used"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(tmp_path, settings: str, words: str) -> None:
    """There is no SLURM where the tests run."""
    assignment = StudyAssignment(None, str(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=words):
        SlurmExecutor(assignment, settings=settings)
