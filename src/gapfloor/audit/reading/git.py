"""Reading files out of a git repository, bare or not, without a work tree and without running anything.

Only plumbing (`rev-parse`, `ls-tree`, `cat-file`) is called: it applies no filter, hook or text conversion
that a repository could configure. Fetching of missing objects is switched off: reading never leaves the disk.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gapfloor.errors import UsageError

#: Seconds after which a command of git is ended: it would wait for ever for a pipe in the place of one of its files.
MOST_SECONDS = 120


@dataclass(frozen=True)
class TreeFile:
    """One file of a commit: its path, its object and whether git says it is a symbolic link."""

    path: str
    blob: str
    size: int
    is_link: bool


def find_git_dir(path: Path) -> Path | None:
    """The git directory at `path`: itself when bare, `.git` inside a work tree, or None."""
    for candidate in (path, path / ".git", path / "repo", path / "repo" / ".git"):
        if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir():
            return candidate
    dot_git = path / ".git"
    if dot_git.is_file():  # a linked work tree: the file names the real directory
        answer = run_git(path, "rev-parse", "--absolute-git-dir")
        if answer.returncode == 0:
            return Path(answer.stdout.decode().strip())
    return None


def run_git(
    folder: Path, *arguments: str, is_git_dir: bool = False, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """The answer of a plumbing command in a work tree, or for a git directory."""
    # A promisor remote could name any helper program: allow no transport at all, and no prompt.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }
    place = [f"--git-dir={folder}"] if is_git_dir else ["-C", str(folder)]
    command = ["git", "-c", "core.fsmonitor=false", *place, *arguments]
    try:
        return subprocess.run(
            command, input=stdin, capture_output=True, env=environment, check=False, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"git did not answer within {MOST_SECONDS} seconds: the repository may hold pipes or other files that are "
            "not regular ones. Scan a fresh clone of it."
        ) from error
    except FileNotFoundError as error:
        raise UsageError(
            "The program 'git' is not installed. Install git, or scan an unpacked folder."
        ) from error


_git = partial(run_git, is_git_dir=True)


def resolve_commit(git_dir: Path, revision: str = "HEAD") -> str:
    """The full hash of `revision`."""
    if revision.startswith("-"):
        raise UsageError(f"'{revision}' is not a revision. Give a commit, a tag or a branch after '@'.")
    answer = _git(git_dir, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
    if answer.returncode != 0:
        reason = answer.stderr.decode(errors="replace").strip().splitlines()
        tail = f" (git: {reason[0]})" if reason else ""
        raise UsageError(f"Commit '{revision}' is not in {git_dir}{tail}. Fetch it, or name another commit.")
    return answer.stdout.decode().strip().splitlines()[-1]


def list_tree(git_dir: Path, commit: str) -> list[TreeFile]:
    """Every file of `commit`, links marked; submodules are left out."""
    answer = _git(git_dir, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    if answer.returncode != 0:
        reason = answer.stderr.decode(errors="replace").strip()
        raise UsageError(f"The files of {commit} in {git_dir} cannot be listed (git: {reason}).")
    files = []
    for row in answer.stdout.split(b"\0"):
        head, _, name = row.partition(b"\t")
        fields = head.split()
        if len(fields) != 4 or fields[1] != b"blob":
            continue
        # A partial clone lists objects that it does not hold; their size is unknown.
        size = int(fields[3]) if fields[3].isdigit() else -1
        path, blob = name.decode(errors="replace"), fields[2].decode()
        files.append(TreeFile(path, blob, size, is_link=fields[0] == b"120000"))
    return files


def read_blobs(git_dir: Path, blobs: list[str]) -> dict[str, bytes]:
    """The contents of `blobs`; objects that the repository does not hold are left out."""
    if not blobs:
        return {}
    wanted = sorted(set(blobs))
    data = _git(git_dir, "cat-file", "--batch", stdin="\n".join(wanted).encode() + b"\n").stdout
    contents: dict[str, bytes] = {}
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        if end < 0:
            break
        header = data[position:end].split()
        position = end + 1
        if len(header) != 3 or header[1] != b"blob":
            continue
        size = int(header[2])
        contents[header[0].decode()] = data[position : position + size]
        position += size + 1
    return contents


def read_file(git_dir: Path, commit: str, path: str) -> bytes | None:
    """The bytes of one file at a commit, exactly as `git show COMMIT:PATH` prints them; None when it is not there."""
    answer = _git(git_dir, "cat-file", "blob", f"{commit}:{path}")
    return answer.stdout if answer.returncode == 0 else None
