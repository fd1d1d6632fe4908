"""What shows that a lock is its author's: a Git commit that holds the plan, and a signature of the lock."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gapfloor.audit.reading.git import run_git
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.plan.lock import LockedText, lock_path

#: What a signature is for (`ssh-keygen -Y sign -n gapfloor`), so that a signature of something else does not count.
NAMESPACE = "gapfloor"


def commit_holding(path: Path, text: str, revision: str = "HEAD") -> str:
    """The full hash of this Git revision if it holds this text in this file; otherwise empty."""
    if not re.fullmatch("HEAD|[0-9a-f]{40}|[0-9a-f]{64}", revision):
        return ""
    try:
        found = run_git(path.parent, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        held = run_git(path.parent, "cat-file", "blob", f"{revision}:./{path.name}")
    except (UsageError, OSError, ValueError):  # Git is not installed, or no such folder
        return ""
    if found.returncode or held.returncode or held.stdout.decode(errors="replace").split() != text.split():
        return ""
    return found.stdout.decode().strip()


def describe_commit(path: Path, locked: LockedText) -> str:
    """Whether the Git commit in the lock holds the plan, as one sentence."""
    if not locked.commit:
        return "The lock names no Git commit: the plan was not committed when it was locked."
    named = f"Git commit {locked.commit[:12]}, which the lock names,"
    if commit_holding(path, locked.text, locked.commit):
        return f"{named} holds this plan."
    return f"{named} is not in this repository or does not hold this plan."


def describe_signature(path: Path) -> str:
    """Whose key signed the lock, as one sentence; a signature that does not fit the lock is refused."""
    lock = lock_path(path)
    signature = lock.with_name(f"{lock.name}.sig")
    if not signature.is_file():
        return f"Nobody signed the lock; to do so: ssh-keygen -Y sign -n {NAMESPACE} -f YOUR-KEY {lock}"
    command = ["ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature.resolve())]
    try:
        answer = subprocess.run(command, input=lock.read_bytes(), capture_output=True, check=False)
    except FileNotFoundError:
        return f"{signature} was not checked, because the program ssh-keygen is not installed."
    key = re.search(r"SHA256:[\w+/]+", answer.stdout.decode(errors="replace"))
    if answer.returncode or key is None:
        raise CheckFailedError(
            f"{signature} is not a signature of {lock}. Restore both from your history, or sign the lock again."
        )
    return f"The lock is signed with the key {key[0]}: compare it with the one that its author published."
