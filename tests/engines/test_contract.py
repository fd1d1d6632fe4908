"""The engine contract, on environments that keep it and on environments that break one part each."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from command_line import run
from gapfloor.engines.contract import check_contract
from gapfloor.engines.doctor import examine
from gapfloor.engines.engine import ENGINES
from gapfloor.errors import MissingExtraError, UnknownEnvironmentError


def broken(name):
    return [clause.name for clause in check_contract(f"gymnasium_envs:{name}").failures]


def test_an_environment_that_keeps_the_contract_has_no_failures():
    contract = check_contract("gymnasium_envs:corridor")
    assert {clause.name: clause.words for clause in contract.clauses if clause.mark != "holds"} == {}
    assert "the same episodes in a fresh process" in {clause.name for clause in contract.clauses}


def test_a_past_that_changes_levels_is_found():
    assert broken("remembering")[:2] == [
        "the same seed is the same level",
        "an episode is a function of its level and actions",
    ]


def test_luck_from_a_global_random_state_is_found_and_named():
    contract = check_contract("gymnasium_envs:uses_global")
    found = {clause.name: clause for clause in contract.failures}
    assert "random" in found["no global random state"].words
    assert "an episode is a function of its level and actions" in found


def test_one_level_for_every_seed_is_found():
    assert broken("constant") == ["another seed is another level"]


def test_episodes_that_do_not_end_are_found(monkeypatch):
    monkeypatch.setattr("gapfloor.engines.contract.MOST_STEPS", 500)
    assert broken("endless") == ["episodes end"]


def test_procgen_is_held_to_the_same_contract(monkeypatch):
    monkeypatch.setattr("gapfloor.engines.contract.LEVELS", (0, 1000, 3))
    assert check_contract("coinrun").failures == ()


def test_the_command_says_it_in_words_and_exits_with_1(capsys):
    done = run(capsys, "doctor", "action_space_envs:of_dict")
    assert done.code == 1
    assert "measures Discrete, MultiDiscrete, MultiBinary and Box" in done.out


@pytest.mark.parametrize("game", ["gym:NoSuchEnvironment-v0", "nosuch.module:make", "gymnasium_envs:nothing"])
def test_a_name_without_an_environment_is_wrong_use_not_a_broken_contract(game):
    with pytest.raises(UnknownEnvironmentError) as caught:
        check_contract(game)
    assert caught.value.exit_code == 2
    assert len(str(caught.value)) < 600


def test_the_command_prints_one_json_document(capsys):
    done = run(capsys, "doctor", "gym:FrozenLake-v1", "--option", "is_slippery=false", "--json")
    document = json.loads(done.out)
    assert document["holds"] is False
    assert [clause["name"] for clause in document["clauses"] if clause["is_failure"]] == [
        "another seed is another level"
    ]


def test_engines_are_listed_with_the_names_of_their_games():
    words = " ".join(finding.words for finding in examine([]) if finding.subject.startswith("engine "))
    assert "gym:ID or package.module:make" in words
    assert "minigrid" in words


def test_a_game_whose_slots_remember_keeps_the_contract_when_levels_are_begun(monkeypatch):
    monkeypatch.setattr("gapfloor.engines.contract.LEVELS", (0, 1000, 3))
    assert {clause.mark for clause in check_contract("dodgeball").clauses} == {"holds"}


def test_every_engine_has_a_prefix_and_an_extra_of_its_own():
    facts = ENGINES.values()
    assert len({each.prefix for each in facts}) == len({each.extra for each in facts}) == len(ENGINES)


@pytest.mark.parametrize("name", ENGINES)
def test_a_missing_engine_is_named_with_the_command_that_installs_it(name):
    absent = dataclasses.replace(ENGINES[name], package="no-such-package-of-gapfloor")
    with pytest.raises(MissingExtraError, match=re.escape(f'pip install "gapfloor[{absent.extra}]"')):
        absent.installed_version()
