"""One difficulty per small repository: the scanner may decline to answer, it must not be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from chosen_levels import ACTING, CHOSEN, RECORDED, SERVED
from difficulties import DIFFICULTIES as FIRST
from difficulties import Difficulty
from gitrepos import write_files
from jax_forms import MAPPED
from switched_learning import SWITCHED
from training_forms import FORMS

from gapfloor.audit.scan import scan

pytestmark = pytest.mark.fast

DIFFICULTIES = [*FIRST, *CHOSEN, *SERVED, *RECORDED, *ACTING, *FORMS, *SWITCHED, *MAPPED]
FIELDS = ("evaluates_heldout", "rule", "provenance", "in_loop")


def grade(folder: Path, case: Difficulty) -> dict[str, str]:
    """For each field: right, likely, open or wrong. A likely answer does not contradict a truth of None."""
    verdict = scan(str(write_files(folder, case.files))).verdict
    grades = {}
    for field, truth in zip(FIELDS, case.truth, strict=True):
        answer, level = getattr(verdict, field), verdict.levels[field]
        if answer in (None, "unresolved"):
            grades[field] = "right" if answer == truth or truth is None else "open"
        elif answer == truth:
            grades[field] = "right" if level == "proved" else "likely"
        elif truth is None and level == "likely":
            grades[field] = "likely"
        else:
            grades[field] = f"wrong: {answer} ({level}) instead of {truth}"
    return grades


@pytest.mark.parametrize("case", DIFFICULTIES, ids=lambda case: case.name)
def test_no_field_is_wrong(tmp_path: Path, case: Difficulty):
    assert {name: grade for name, grade in grade(tmp_path, case).items() if grade.startswith("wrong")} == {}


def test_most_difficulties_are_decided(tmp_path: Path):
    grades = [grade(tmp_path / str(number), case) for number, case in enumerate(DIFFICULTIES)]
    assert len({case.name for case in DIFFICULTIES}) == len(grades) >= 36
    answered = sum(set(one.values()) <= {"right", "likely"} for one in grades)
    proved = sum(set(one.values()) == {"right"} for one in grades)
    assert (answered >= 85, proved >= 60) == (True, True), (answered, proved)
