"""What shows in a stored cell without an engine: labels, rows and sums that do not follow from its specification."""

import numpy as np
import pytest

from gapfloor.api.verify import cell_problems
from gapfloor.levels.schedule import LevelSet, drawn_schedule
from gapfloor.records.stored_cell import content_key

pytestmark = pytest.mark.fast

CONTENT = {
    "game": "coinrun", "mode": "easy", "level_set": "train", "draw": 0, "rule": "sampled", "policy": "abc",
    "slots": 2, "burn_in": 1, "episodes": 4, "levels": "0:200", "options": {},
}  # fmt: skip
LABELS = {
    "game": "coinrun", "mode": "easy", "budget": "", "agent": "a", "seed": 1, "reference": "", "rule": "sampled",
    "level_set": "train", "draw": 0,
}  # fmt: skip
SCHEDULE = drawn_schedule(LevelSet(0, 200), draw=0, slots=2, episodes=4, burn_in=1)
COLUMNS = {
    "slot": SCHEDULE.slot, "index": SCHEDULE.index, "level_seed": SCHEDULE.level_seed,
    "episode_return": np.zeros(4), "length": np.array([1, 2, 3, 4]),
}  # fmt: skip
RECORD = {"n_steps": 10, "action_counts": [4, 6]}


def problems(store, *, content=CONTENT, labels=LABELS, columns=COLUMNS, record=RECORD):
    name = f"cell-{content_key(content)[:16]}"
    store.write_cell(file_name=name, content=content, labels=labels, columns=columns, record=record)
    (cell,) = store.cells()
    return cell_problems(cell)


def test_a_cell_that_fits_has_no_problem(empty_store):
    assert problems(empty_store) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": {**LABELS, "rule": "greedy"}}, "labelled rule greedy"),
        ({"labels": {**LABELS, "draw": 1}}, "labelled draw 1"),
        ({"columns": {**COLUMNS, "level_seed": SCHEDULE.level_seed[::-1]}}, "level_seed is not that of the schedule"),
        ({"columns": {name: values[:2] for name, values in COLUMNS.items()}}, "2 episodes, not 4"),
        ({"record": {**RECORD, "n_steps": 9}}, "number of steps"),
        ({"record": {}}, "cannot be read"),
        ({"content": {**CONTENT, "slots": 3}}, "cannot be read"),
        ({"content": {**CONTENT, "levels": "x"}}, "cannot be read"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(empty_store, change, words):
    assert any(words in problem for problem in problems(empty_store, **change))
