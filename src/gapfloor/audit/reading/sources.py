"""Reading Python sources as text from a folder or a git commit, without ever leaving it or running them.

Everything that cannot be read (too big, binary, broken, a link, Python 2) is listed with its reason: a scanner
that skips a file silently could claim an absence it has not seen.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gapfloor.audit.reading.git import TreeFile, find_git_dir, list_tree, read_blobs, resolve_commit
from gapfloor.audit.reading.parsing import notebook_source
from gapfloor.errors import UsageError

#: Larger Python files are generated or hostile; 2 MB is fifty times the longest hand-written script we met.
LARGEST_FILE = 2_000_000
LARGEST_NOTEBOOK = 30_000_000
#: Configuration files are small; a larger JSON file is data.
LARGEST_SETTINGS = 200_000
MOST_SETTINGS = 2_000
SETTINGS_ENDINGS = (".yaml", ".yml", ".json", ".toml")
LARGEST_TOTAL = 200_000_000
MOST_FILES = 20_000
#: A cookie may name any codec Python knows, some of them quadratic; these are the ones sources really use.
ENCODINGS = frozenset(
    {"ascii", "utf-8", "utf-8-sig", "iso8859-1", "iso8859-15", "cp1252", "cp1251", "koi8-r"}
    | {"gbk", "gb2312", "gb18030", "big5", "shift_jis", "euc_jp", "euc_kr"}
)
SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".eggs"}
)


@dataclass(frozen=True)
class SourceFile:
    """A Python or configuration file as text; `path` is relative to the scanned root, with forward slashes."""

    path: str
    text: str


@dataclass(frozen=True)
class Unread:
    """A file that was not read, and why."""

    file: str
    reason: str
    may_play: bool = True
    """Whether it could hold an evaluation; a link, or a text that steps nothing, cannot."""


_PLAYS = re.compile(rb"\.step\(|predict\(|evaluat|rollout|\.act\(")


def may_play(data: bytes) -> bool:
    """Whether a text that cannot be parsed mentions anything that plays an environment."""
    return _PLAYS.search(data) is not None


@dataclass
class Sources:
    """What was read from one target: sources, configuration files and files that were not read."""

    name: str
    commit: str | None = None
    files: list[SourceFile] = field(default_factory=list)
    settings: list[SourceFile] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    total: int = 0

    def skip(self, path: str, reason: str, *, may_play: bool = True) -> None:
        """List a file as not read; of a configuration file only settings are lost."""
        if not path.endswith(SETTINGS_ENDINGS):
            self.unread.append(Unread(path, reason, may_play))

    def may_take(self, path: str, size: int) -> bool:
        """Whether a file is within the limits; one that is not is listed."""
        if path.endswith(SETTINGS_ENDINGS):
            return 0 <= size <= LARGEST_SETTINGS and len(self.settings) < MOST_SETTINGS
        largest = LARGEST_NOTEBOOK if path.endswith(".ipynb") else LARGEST_FILE  # notebooks carry pictures
        if size > largest:
            self.skip(path, f"larger than {largest} bytes")
        elif self.total + size > LARGEST_TOTAL or len(self.files) >= MOST_FILES:
            self.skip(path, "the limit of files or bytes of one scan was reached")
        else:
            self.total += max(size, 0)
            return True
        return False

    def add(self, path: str, data: bytes) -> None:
        """Keep a file as text."""
        if path.endswith(SETTINGS_ENDINGS):
            with suppress(UnicodeDecodeError):
                self.settings.append(SourceFile(path, data.decode("utf-8-sig")))
            return
        text = _decode(path, data)
        if isinstance(text, Unread):
            self.unread.append(text)
        else:
            self.files.append(SourceFile(path, text))


def read_target(target: str) -> Sources:
    """Read PATH, GIT_DIR, PATH@COMMIT or GIT_DIR@COMMIT."""
    path, commit = _split_target(target)
    if not path.exists():
        raise UsageError(
            f"'{target}' does not exist. Give a folder, a Python file, or a git directory with @COMMIT."
        )
    if path.is_file():
        return _read_folder(path.parent, name=path.name, only=path.name)
    git_dir = find_git_dir(path)
    is_work_tree = (path / ".git").exists() or git_dir is None
    if commit is None and is_work_tree:
        return _read_folder(path, name=path.resolve().name, only=None)
    if git_dir is None:
        raise UsageError(
            f"'{path}' is not a git repository, so '@{commit}' means nothing there. Leave it out."
        )
    return _read_commit(git_dir, name=_repository_name(path), revision=commit or "HEAD")


def _split_target(target: str) -> tuple[Path, str | None]:
    if Path(target).exists() or "@" not in target:
        return Path(target), None
    path, _, commit = target.rpartition("@")
    if not commit or not path:
        raise UsageError(f"'{target}' has nothing on one side of '@'. Write PATH@COMMIT.")
    return Path(path), commit


def _repository_name(path: Path) -> str:
    parts = [part for part in path.resolve().parts if part not in (".git", "repo")]
    return parts[-1].removesuffix(".git").replace("+", "/") if parts else str(path)


def _read_folder(root: Path, *, name: str, only: str | None) -> Sources:
    reading = Sources(name)
    for path in [root / only] if only else _walk(root, reading):
        relative = path.relative_to(root).as_posix()
        data = _read_regular(path, relative, reading)
        if data is not None:
            reading.add(relative, data)
    return reading


def _walk(root: Path, reading: Sources) -> list[Path]:
    found: list[Path] = []
    for folder, folders, names in os.walk(root, followlinks=False):
        here = Path(folder)
        kept = []
        for inner in sorted(set(folders) - SKIPPED_FOLDERS):
            if (here / inner).is_symlink():
                reason = "symbolic link, not followed"
            elif (here / inner / "pyvenv.cfg").exists():
                reason = "virtual environment"
            else:
                kept.append(inner)
                continue
            reading.skip((here / inner).relative_to(root).as_posix(), reason, may_play=False)
        folders[:] = kept
        wanted = (".py", ".ipynb", *SETTINGS_ENDINGS)
        found.extend(here / file for file in sorted(names) if file.endswith(wanted))
    return found


def _read_regular(path: Path, relative: str, reading: Sources) -> bytes | None:
    # No link is followed and a pipe does not block: what is opened is what lies inside the folder.
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        is_link = path.is_symlink()
        reason = "symbolic link, not followed" if is_link else f"cannot be opened ({error.strerror})"
        reading.skip(relative, reason, may_play=not is_link)
        return None
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            reading.skip(relative, "not a regular file", may_play=False)
            return None
        return stream.read(status.st_size) if reading.may_take(relative, status.st_size) else None


def _read_commit(git_dir: Path, *, name: str, revision: str) -> Sources:
    commit = resolve_commit(git_dir, revision)
    reading = Sources(name, commit)
    wanted: list[TreeFile] = []
    for entry in list_tree(git_dir, commit):
        if not entry.path.endswith((".py", ".ipynb", *SETTINGS_ENDINGS)):
            continue
        if entry.is_link:
            reading.skip(entry.path, "symbolic link, not followed", may_play=False)
        elif reading.may_take(entry.path, entry.size):
            wanted.append(entry)
    contents = read_blobs(git_dir, [entry.blob for entry in wanted])
    for entry in wanted:
        if entry.blob in contents:
            reading.add(entry.path, contents[entry.blob])
        else:
            reading.skip(entry.path, "this clone does not hold the file")
    return reading


_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def _decode(path: str, data: bytes) -> str | Unread:
    """The text of a source file, or why there is none."""
    if path.endswith(".ipynb"):
        text = notebook_source(data)
        return Unread(path, "not a notebook that can be read", may_play(data)) if text is None else text
    if b"\0" in data:
        return Unread(path, "binary, not text", may_play=False)
    cookies = [_COOKIE.match(line) for line in data.split(b"\n", 2)[:2]]
    encoding = next((one[1].decode("ascii", errors="replace") for one in cookies if one), "utf-8-sig")
    try:
        if codecs.lookup(encoding).name not in ENCODINGS:
            raise LookupError
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        return Unread(path, f"encoding '{encoding[:40]}' is not one that is read", may_play(data))
    except UnicodeDecodeError:
        return Unread(path, f"not valid {encoding}", may_play(data))
