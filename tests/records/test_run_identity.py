"""One place spells the names of agents and runs, and a blind agent is never filed as the sighted one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapfloor.records.run_identity import RunIdentity, agent_of_header, read_run_identity

pytestmark = pytest.mark.fast

AGENTS = Path(__file__).parents[2] / "agents"
HEADER = {"game": "starpilot", "mode": "easy", "encoder": "impala", "seed": 3, "steps": 4096}


def test_a_blind_agent_has_a_name_of_its_own() -> None:
    assert agent_of_header(HEADER) == "impala"
    assert agent_of_header({**HEADER, "blind": True}) == "impala_blind"


def test_a_policy_without_a_header_is_called_policy() -> None:
    assert agent_of_header({}) == "policy"


def test_a_checkpoint_without_a_budget_label_is_named_by_its_steps() -> None:
    assert RunIdentity.from_header(HEADER).name == "starpilot-easy-impala-4096-s3"


def test_parts_that_are_not_known_leave_no_gap_in_the_name() -> None:
    assert RunIdentity(agent="policy").name_in_game == "policy"
    assert RunIdentity(game="coinrun", agent="policy", seed=2).name == "coinrun-policy-s2"


def test_labels_give_the_identity_back() -> None:
    run = RunIdentity.from_header({**HEADER, "budget": "8M", "blind": True})
    assert RunIdentity.from_labels(run.labels) == run


@pytest.mark.parametrize("folder", sorted(AGENTS.glob("*/")), ids=lambda folder: folder.name)
def test_the_folder_of_every_shipped_run_is_the_name_in_its_checkpoint(folder: Path) -> None:
    run = read_run_identity(folder)
    assert run is not None
    assert run.name == folder.name


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 20, b"\x02" + bytes(7) + b"{}", b"\x02" + bytes(7) + b"[]", b"\x01\x02"]
)
def test_what_is_not_a_checkpoint_has_no_identity(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(content)
    assert read_run_identity(tmp_path) is None
    assert read_run_identity(tmp_path / "missing") is None
