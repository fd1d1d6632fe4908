"""The scanner knows dependencies, not the twelve code bases it is measured on."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import pytest

import gapfloor.audit
from gapfloor.audit.interpreter.facts import (
    facts,
    find_actor,
    find_environment,
    find_loops,
)
from gapfloor.audit.ledger import load_ledger

pytestmark = pytest.mark.fast

#: Repositories that are dependencies of the others; their names are what facts are about.
DEPENDENCIES = {"procgen", "baselines", "openai"}
#: Words of the ledger's files and names that are also ordinary words of reinforcement learning code.
ORDINARY = {
    "train",
    "test",
    "model",
    "envs",
    "config",
    "policies",
    "policy",
    "runner",
    "distributions",
    "agents",
}
ORDINARY |= {
    "evaluation",
    "ppo",
    "ppo2",
    "readme",
    "main_utils",
    "vecgame",
    "mpi_adam_optimizer",
    "rad",
    "enjoy",
    "daac",
}
ORDINARY |= {"coinrun", "algo", "eval", "make_env", "maker"}

#: Class and function names that only the twelve have.
OF_THE_TWELVE = {
    "VecPyTorchProcgen",
    "IDAACnet",
    "PPOnet",
    "LevelSampler",
    "make_lr_venv",
    "make_dqn_lr_venv",
    "evaluate_saved_model",
    "eval_policy",
    "run_test_track",
    "run_training_track",
    "make_procgen_env",
    "make_an_env",
    "ProcgenToGymNewAPI",
    "ConsistentDropout",
    "MixregModel",
    "RunnerWithAugs",
    "ConfigSingle",
    "CoinRunVecEnv",
    "CnnPolicy",
    "PhasicValueModel",
    "Roller",
    "get_procgen_venv",
    "train_fn",
    "is_test_worker",
    "is_test_rank",
    "compute_args_dependencies",
    "deterministic_rollout",
    "eval_eps",
    "test_worker_interval",
    "level_sampler_args",
}


def scanner_text() -> str:
    folder = Path(gapfloor.__file__).parent / "audit"
    files = [path for path in sorted(folder.rglob("*.py")) if path.name != "ledger.py"]
    files += [folder / "data" / "facts.json", folder / "data" / "functions.json"]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def names_of_the_twelve() -> set[str]:
    names = set(OF_THE_TWELVE)
    for entry in load_ledger():
        owner, _, repo = entry.repo.partition("/")
        names |= {owner, repo, entry.name}
        for line in entry.evidence:
            if line.repo == entry.repo:
                names.add(Path(line.file).stem)
                names |= set(Path(line.file).parts[:-1])
    return {name for name in names if name.lower() not in DEPENDENCIES | ORDINARY and len(name) > 2}


def test_no_name_of_the_twelve_occurs_in_the_scanner_or_its_facts():
    text = scanner_text()
    found = {
        name
        for name in names_of_the_twelve()
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.I)
    }
    assert found == set()


def test_the_search_for_names_would_find_one():
    assert {
        "auto-drac",
        "train_rainbow",
        "vsop_procgen",
        "VecPyTorchProcgen",
        "ucb_rl2_meta",
    } <= names_of_the_twelve()


def test_every_fact_names_the_repository_the_version_and_the_file_it_was_read_in():
    for fact in (*facts("environments"), *facts("actors"), *facts("loops")):
        where = re.match(r"[\w-]+/[\w-]+ (\S+ )?(@[0-9a-f]{7}|v[\d.]+) \S+\.(py|h)\b", fact.source)
        assert where is not None, (fact.name, fact.source)


def test_the_longest_name_that_fits_gives_the_fact():
    assert find_actor("stable_baselines3.DQN.load", "predict").false == "epsilon-greedy"
    assert find_actor("stable_baselines3.common.base_class.BaseAlgorithm", "predict").false == "unresolved"
    assert find_actor("ray.rllib.algorithms.ppo.PPOConfig().build", "compute_single_action").true == "sampled"


def test_the_table_is_versioned_and_well_formed():
    text = resources.files("gapfloor.audit").joinpath("data/facts.json").read_text(encoding="utf-8")
    assert json.loads(text)["schema"] == "gapfloor-audit-facts/2"
    for fact in (*facts("actors"), *facts("loops")):
        assert fact.rule in (None, "sampled", "argmax", "epsilon-greedy")
        assert {fact.true, fact.false} <= {None, "sampled", "argmax", "epsilon-greedy", "unresolved"}
        assert (fact.flag is None) == (fact.true is None)


def test_facts_are_found_by_import_path_and_not_by_resemblance():
    assert find_environment("procgen.ProcgenEnv") is not None
    assert find_environment("mine.ProcgenEnv") is None
    assert find_actor("stable_baselines3.PPO", "predict") is not None
    assert find_actor("stable_baselines3x.PPO", "predict") is None
    assert [fact.kind for fact in find_loops("stable_baselines3.common.evaluation.evaluate_policy")] == [
        "evaluation"
    ]
    assert find_loops("mine.learn") == []
