"""Stores, plans, checkpoints, episode files and JSON of version 0.1 are read by today's code.

`tests/data/version-0.1/README.md` says how the files were made. Fields that were renamed since are listed here,
so that a reader of the JSON can find them.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import run
from folders import file_hashes
from gapfloor.policies.checkpoint import load_network
from gapfloor.records.store import Store

OLD = Path(__file__).parents[1] / "data" / "version-0.1"
RUN = "store/runs/starpilot-easy-impoola-512-s1"
ABSENT = "(absent)"
#: Two runs were called; now a call needs three.
CALLS = ("above", "below", "equivalent", "not distinguishable")
DESIGN = (
    "--train", "0:10", "--test", "100:110", "--draws", "0", "--episodes", "8", "--slots", "4", "--workers", "1",
    "--store", "store", "--json",
)  # fmt: skip
#: The names that fields of the rows have now; where there are two, a pair became two fields.
NAMES: dict[str, dict[str, Any]] = {
    "floor_comparisons": {
        "delta": "delta.value", "df": "delta.df", "p": "delta.p", "ci": ("delta.low", "delta.high"),
        "p_tost": "equivalence.p", "margin": "equivalence.margin", "call": "decision.call",
        "family": "decision.family",
    },
    "gaps": {
        "sem": "gap_sem", "ci": ("estimate.low", "estimate.high"), "p_fisher": "estimate.p",
        "family": "decision.family",
    },
    "pairs": {
        "rule_a": "rule", "difference": "difference.value", "sem": "difference.se", "df": "difference.df",
        "ci": ("difference.low", "difference.high"), "p": "difference.p", "runs_a_higher": "runs_first_higher",
        "runs_b_higher": "runs_second_higher",
    },
}  # fmt: skip
NAMES["agent_floor_comparisons"] = NAMES["floor_comparisons"]
RUN_FIELDS = ("agent", "seed", "train", "test", "gap", "p")
#: What was below `beside` and is in the row of `sensitivity` now.
SENSITIVITY = {
    "crossed_se": "generator.se", "crossed_df": "generator.df", "crossed_p": "generator.p",
    "crossed_interval": ("generator.low", "generator.high"), "level_variance_share": "level_variance_share",
}  # fmt: skip
#: Fields that went: they follow from others, are of methods that went, or the study of two runs is not tested any more.
GONE = {
    "estimand", "t", "z", "ratio", "success", "floor_success", "p_holm", "family_size", "p_stouffer", "p_one_sided",
    "mean_a", "mean_b", "runs_equal", "beside", "sem_clustered", "p_sign_flip",
}  # fmt: skip


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the old files, which is also the current folder."""
    shutil.copytree(OLD, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    return tmp_path / "old"


def printed_then(name: str) -> Any:
    return json.loads((OLD / "outputs" / f"{name}.json").read_text(encoding="utf-8"))


def differences(then: Any, now: Any, where: str = "") -> list[str]:
    """Where a document says something else than the old one; it may say more, also where there was null."""
    if then is None:
        return []
    if isinstance(then, dict):
        found = []
        for key, value in then.items():
            new = now
            for part in key.split("."):
                new = new.get(part, ABSENT) if isinstance(new, dict) else ABSENT
            found += differences(value, new, f"{where}.{key}")
        return found
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(then, now, strict=True))
        return [each for at, (a, b) in pairs for each in differences(a, b, f"{where}[{at}]")]
    if isinstance(then, float) and isinstance(now, float):
        is_same = math.isclose(then, now, rel_tol=1e-9, abs_tol=1e-12)
    else:
        is_same = then == now or (then in CALLS and now == "not tested")
    return [] if is_same else [f"{where}: was {then!r}, is {now!r}"]


def renamed(row: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """The values of an old row by the names that they have now."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        name = names.get(key, key)
        if isinstance(name, tuple):
            found |= dict(zip(name, value, strict=True))
        elif key == "runs":
            found[key] = [{name: run[name] for name in RUN_FIELDS} for run in value]
        elif key in names or key not in GONE:
            found[name] = value
    return found


def with_new_names(then: dict[str, Any]) -> dict[str, Any]:
    """An old analysis with the names of now."""
    return {
        name: [renamed(row, NAMES.get(name, {})) for row in rows] if isinstance(rows, list) else rows
        for name, rows in then.items()
        if name != "call_counts"
    }


@pytest.mark.fast
def test_an_old_store_is_analysed_with_the_same_numbers(old: Path, capsys) -> None:
    done = run(capsys, "analyse", "store", "--plan", "plan.toml", "--json")
    assert done.code == 0, done.err
    then, now = printed_then("analyse"), json.loads(done.out)
    assert [problem for problem in then.pop("problems") if problem not in now["problems"]] == []
    del then["profiles"]  # removed in 0.3
    # No plan names these rows; they used to be called pre-specified like the rest.
    for row in then["agent_floor_comparisons"]:
        for field in ("status", "exploratory_reason", "family", "plan_hash"):
            row.pop(field, None)
    assert differences(with_new_names(then), now) == []
    beside = {(row["rule"], row["level_set"]): row["beside"] for row in then["floor_comparisons"]}
    beside |= {(row["rule"], "gap"): row["beside"] for row in then["gaps"]}
    for row in now["sensitivity"]:
        old_row = {name: beside[row["rule"], row["quantity"]].get(name) for name in SENSITIVITY}
        known = {name: value for name, value in old_row.items() if value is not None}
        assert differences(renamed(known, SENSITIVITY), row) == []


@pytest.mark.fast
def test_an_old_episode_file_gives_the_same_floors_and_gaps(old: Path, capsys) -> None:
    done = run(capsys, "analyse", "episodes.csv", "--plan", "plan.toml", "--json")
    assert done.code == 0, done.err
    then, now = with_new_names(printed_then("analyse")), json.loads(done.out)
    assert differences(then["floors"], now["floors"]) == []
    assert differences(then["gaps"], now["gaps"]) == []


@pytest.mark.fast
def test_an_old_store_is_reported(old: Path, capsys) -> None:
    done = run(capsys, "report", "store", "--plan", "plan.toml", "--out", "report", "--format", "md,html")
    assert done.code == 0, done.err
    assert "starpilot" in Path("report/tables.md").read_text(encoding="utf-8")


@pytest.mark.fast
def test_an_old_lock_is_checked(old: Path, capsys) -> None:
    done = run(capsys, "plan", "check", "plan.toml", "--json")
    assert done.code == 0, done.err
    assert differences(printed_then("plan-check"), json.loads(done.out)) == []


@pytest.mark.fast
def test_an_old_plan_that_was_changed_after_locking_is_refused(old: Path, capsys) -> None:
    plan = Path("plan.toml")
    plan.write_text(plan.read_text(encoding="utf-8").replace("alpha = 0.05", "alpha = 0.1"), encoding="utf-8")
    done = run(capsys, "plan", "check", "plan.toml")
    assert done.code == 1
    assert "0.1" in done.out + done.err


@pytest.mark.fast
def test_an_old_scan_says_the_same(old: Path, capsys) -> None:
    Path("scanned").mkdir()
    shutil.copyfile("scanned-evaluate.txt", "scanned/evaluate.py")
    done = run(capsys, "audit", "scan", "scanned", "--json")
    assert done.code == 0, done.err
    then = printed_then("audit-scan")
    for path in then["paths"]:
        del path["evidence"]  # the chain is described in other words
    assert differences(then, json.loads(done.out)) == []


def test_the_status_of_an_old_study_has_the_same_fields(old: Path, capsys) -> None:
    done = run(capsys, "study", "status", "study.toml", "--store", "store", "--json")
    assert done.code == 0, done.err
    then, now = printed_then("study-status"), json.loads(done.out)
    assert set(then) <= set(now)
    assert set(then["tasks"]) - {"analyse"} == set(now["tasks"])  # the task report analyses now
    assert now["damaged"] == []


@pytest.mark.parametrize(
    "command",
    [
        ("floor", "starpilot"),
        ("evaluate", RUN, "--game", "starpilot", "--rules", "sampled,greedy", "--batch", "8", "--probe", "8"),
    ],
)
def test_nothing_is_added_to_an_old_store_and_the_remedy_is_named(old: Path, capsys, command) -> None:
    before = file_hashes(old / "store" / "cells")
    done = run(capsys, *command, *DESIGN)
    assert done.code == 2
    assert "analyse and report read it, but nothing can be added. Use another --store." in done.err
    assert file_hashes(old / "store" / "cells") == before


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("floor", ("floor", "starpilot")),
        (
            "evaluate",
            (
                "evaluate",
                RUN,
                "--game",
                "starpilot",
                "--rules",
                "sampled,greedy",
                "--batch",
                "8",
                "--probe",
                "8",
            ),
        ),
    ],
)
def test_the_same_command_gives_the_fields_of_old_in_a_new_store(old: Path, capsys, name, command) -> None:
    options = ["new" if option == "store" else option for option in DESIGN]
    done = run(capsys, *command, *options)
    assert done.code == 0, done.err
    names = {
        "summary": "returns", "gap": "gaps", "comparisons": "floor_comparisons",
        "references": "reference_comparisons",
    }  # fmt: skip
    assert {names.get(key, key) for key in printed_then(name)} <= set(json.loads(done.out))


def test_an_old_checkpoint_is_the_policy_of_its_cells(old: Path) -> None:
    policy = load_network(old / RUN / "checkpoint.safetensors", backend="torch")
    played = {
        cell.manifest.content["policy"]
        for cell in Store(old / "store").cells()
        if cell.manifest.labels["seed"] == 1
    }
    assert played == {policy.fingerprint}
    logits = policy.logits(np.zeros((2, 64, 64, 3), dtype=np.uint8))
    assert logits.shape == (2, 15)
    assert np.isfinite(logits).all()
