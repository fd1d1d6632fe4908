"""The registry that comes with the package."""

from __future__ import annotations

import csv
import importlib.resources
import io

import pytest

from gapfloor.analysis.known_floors import (
    FloorRegistry,
    published_scores,
    shipped_registry,
)
from gapfloor.errors import UsageError
from registry_csv import CSV_COLUMNS, registry_csv, scores_of

pytestmark = pytest.mark.fast


def test_the_registry_has_eighty_environments_of_five_families() -> None:
    registry = shipped_registry()
    assert len(registry.entries) >= 80
    assert len(registry.families) >= 5
    names = [(entry.game, entry.mode) for entry in registry.entries]
    assert len(set(names)) == len(names)
    assert sum(entry.floor.n_episodes >= 1000 for entry in registry.entries) >= 60


def test_every_entry_has_the_uniform_floor_first_and_its_provenance() -> None:
    for entry in shipped_registry().entries:
        assert entry.floor.reference == "uniform"
        assert entry.command.startswith(f"gapfloor floor {entry.game}")
        assert entry.seed
        assert entry.version
        for floor in entry.floors:
            # Other references may have fewer seeds than the floor where episodes are slow.
            assert floor.n_episodes >= (20 if floor is entry.floor else 10)
            assert floor.sem >= 0
            assert len(floor.provenance) == 64
            assert list(floor.quantiles) == sorted(floor.quantiles)


def test_boxes_have_the_action_of_zeros() -> None:
    boxes = [entry for entry in shipped_registry().entries if entry.actions.startswith("Box")]
    assert boxes
    assert all("zero" in {floor.reference for floor in entry.floors} for entry in boxes)


def test_json_and_csv_hold_the_same_floors() -> None:
    registry = shipped_registry()
    text = importlib.resources.files("gapfloor").joinpath("data/registry.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert text == registry_csv(registry)
    assert len(rows) == sum(len(entry.floors) for entry in registry.entries)


def test_published_scores_have_a_source_and_stand_next_to_ours() -> None:
    assert len([score for score in published_scores() if "dqn_zoo" in score.source]) == 57
    assert all(score.source and score.conditions for score in published_scores())
    hopper = scores_of("gym:Hopper-v5", "")[0]
    assert hopper.score == pytest.approx(-20.27, abs=0.01)
    assert hopper.upper == 3234.3


def test_a_family_is_found_by_any_spelling_and_an_unknown_one_is_refused() -> None:
    registry = shipped_registry()
    family = registry.families[0]
    assert registry.of_family(family.upper().replace(" ", "-")).families == (family,)
    with pytest.raises(UsageError, match="has no family 'chess'"):
        FloorRegistry(registry.entries[:1]).of_family("chess")
