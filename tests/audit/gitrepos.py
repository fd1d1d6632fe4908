"""Small git repositories, written by the tests that need them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def git(folder: Path, *arguments: str) -> str:
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "T"), ("EMAIL", "t@example.org"))
    }
    environment = os.environ | identity | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout.strip()


def commit_files(folder: Path, files: dict[str, str]) -> str:
    """Write `files`, commit everything and return the commit's hash."""
    write_files(folder, files)
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "state")
    return git(folder, "rev-parse", "HEAD")
