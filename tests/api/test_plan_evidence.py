"""A lock names the Git commit that holds its plan, can be signed, and says that its hash has no key."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import small_stores
from fuzz.harness import run_line
from gapfloor.api.plan_files import check_plan, init_plan, lock_file
from gapfloor.errors import CheckFailedError

NEEDS_SSH = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return init_plan(tmp_path / "plan.toml")


def commit(plan: Path) -> str:
    git(plan.parent, "add", ".")
    git(plan.parent, "commit", "-q", "-m", "Plan")
    return git(plan.parent, "rev-parse", "HEAD")


def test_a_lock_names_the_commit_that_holds_its_plan(plan: Path) -> None:
    made = commit(plan)
    assert lock_file(plan, cells_seen=0).plan.commit == made
    commit(plan)  # a later commit, which holds the lock too, changes nothing
    found = check_plan(plan)
    assert found.plan.commit == made
    assert f"Git commit {made[:12]}, which the lock names, holds this plan." in str(found)


def test_a_plan_that_no_commit_holds_has_a_lock_as_before(plan: Path) -> None:
    commit(plan)
    plan.write_text(plan.read_text().replace("alpha = 0.05", "alpha = 0.04", 1))
    assert lock_file(plan, cells_seen=0).plan.commit == ""
    assert "commit" not in json.loads(plan.with_suffix(".lock").read_text())["plan"]
    assert "was not committed when it was locked" in str(check_plan(plan))


def test_a_commit_that_does_not_hold_the_plan_is_not_believed(plan: Path) -> None:
    made = commit(plan)
    lock_file(plan, cells_seen=0)
    lock = plan.with_suffix(".lock")
    other = lock.read_text().replace(made, "0" * 40)
    document = {key: value for key, value in json.loads(other).items() if key != "seal"}
    lock.write_bytes(_sealed(document))
    assert "does not hold this plan" in str(check_plan(plan))
    document["plan"]["commit"] = "--output=x"
    lock.write_bytes(_sealed(document))
    with pytest.raises(CheckFailedError, match="damaged"):
        check_plan(plan)


def _sealed(document: dict[str, object]) -> bytes:
    """The lock with a new seal, which anyone can make: that is why the commit and the signature are needed."""
    seal = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return json.dumps({**document, "seal": seal}).encode()


@NEEDS_SSH
def test_a_signed_lock_names_its_key_and_a_changed_one_is_refused(plan: Path, tmp_path: Path) -> None:
    lock_file(plan, cells_seen=0)
    lock = plan.with_suffix(".lock")
    assert f"ssh-keygen -Y sign -n gapfloor -f YOUR-KEY {lock}" in str(check_plan(plan))
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    shown = subprocess.run(["ssh-keygen", "-lf", str(key)], check=True, capture_output=True, text=True).stdout
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", "gapfloor", "-f", str(key), str(lock)], check=True
    )
    assert shown.split()[1] in str(check_plan(plan))
    document = json.loads(lock.read_text())
    del document["seal"]
    document["plan"]["locked_at"] = "2020-01-01T00:00:00Z"
    lock.write_bytes(_sealed(document))
    with pytest.raises(CheckFailedError, match="not a signature of"):
        check_plan(plan)


def test_a_repository_cannot_run_a_program_while_a_plan_is_locked(plan: Path) -> None:
    commit(plan)
    settings = plan.parent / ".git" / "config"
    canary = plan.parent / "CANARY"
    settings.write_text(
        settings.read_text()
        + f'[core]\nfsmonitor = "touch {canary}"\nsshCommand = "touch {canary}"\nhooksPath = "."\n'
        + f'[diff]\nexternal = "touch {canary}"\n[filter "x"]\nsmudge = "touch {canary}"\n'
        + f'[gpg]\nprogram = "touch {canary}"\n'
    )
    (plan.parent / ".gitattributes").write_text("* filter=x diff=x\n")
    assert lock_file(plan, cells_seen=0).plan.commit
    check_plan(plan)
    assert not canary.exists()


def test_every_place_with_a_label_says_that_the_hash_has_no_key(plan: Path, tmp_path: Path) -> None:
    episodes = tmp_path / "more" / "episodes.parquet"
    episodes.parent.mkdir()
    pq.write_table(pa.Table.from_pylist(small_stores.small_rows(episodes=2)), episodes)
    made = commit(plan)
    out = tmp_path / "report"
    for words in (
        ["plan", "lock", str(plan), "--cells-seen", "0"],
        ["plan", "check", str(plan)],
        ["analyse", str(episodes), "--plan", str(plan)],
    ):
        assert "hash has no key" in run_line(words).out
    words = ["report", str(episodes), "--plan", str(plan), "--out", str(out), "--formats", "md,methods,card"]
    assert run_line(words).code == 0
    texts = {
        each.name: each.read_text() for each in out.rglob("*") if each.suffix in (".md", ".tex", ".json")
    }
    assert any("hash has no key" in text and made in text for text in texts.values())
    assert "hash has no key" in "".join(text for name, text in texts.items() if "card" in name)
