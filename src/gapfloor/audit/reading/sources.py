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
from dataclasses import dataclass
from pathlib import Path

from gapfloor.audit.reading.git import TreeFile, find_git_dir, list_tree, read_blobs, resolve_commit
from gapfloor.audit.reading.notebooks import notebook_source
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
    """One Python file as text; `path` is relative to the scanned root, with forward slashes."""

    path: str
    text: str


@dataclass(frozen=True)
class SettingsFile:
    """One configuration file (YAML, JSON or TOML) as text."""

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


@dataclass(frozen=True)
class Sources:
    """What was read from one target."""

    name: str
    commit: str | None
    files: tuple[SourceFile, ...]
    unread: tuple[Unread, ...]
    settings: tuple[SettingsFile, ...] = ()


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
    files: list[SourceFile] = []
    settings: list[SettingsFile] = []
    unread: list[Unread] = []
    total = 0
    for path in [root / only] if only else _walk(root, unread):
        relative = path.relative_to(root).as_posix()
        if relative.endswith(SETTINGS_ENDINGS):
            _add_settings(relative, _read_regular(path, relative, []), settings)
            continue
        data = _read_regular(path, relative, unread)
        if data is None:
            continue
        total += len(data)
        if total > LARGEST_TOTAL or len(files) >= MOST_FILES:
            unread.append(Unread(relative, "the limit of files or bytes of one scan was reached"))
            continue
        _decode(relative, data, files, unread)
    return Sources(name=name, commit=None, files=tuple(files), unread=tuple(unread), settings=tuple(settings))


def _add_settings(path: str, data: bytes | None, settings: list[SettingsFile]) -> None:
    """Keep a configuration file; one that cannot be read only leaves settings without a value."""
    if data is None or len(data) > LARGEST_SETTINGS or len(settings) >= MOST_SETTINGS:
        return
    with suppress(UnicodeDecodeError):
        settings.append(SettingsFile(path, data.decode("utf-8-sig")))


def _walk(root: Path, unread: list[Unread]) -> list[Path]:
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
            unread.append(Unread((here / inner).relative_to(root).as_posix(), reason, may_play=False))
        folders[:] = kept
        wanted = (".py", ".ipynb", *SETTINGS_ENDINGS)
        found.extend(here / file for file in sorted(names) if file.endswith(wanted))
    return found


def _read_regular(path: Path, relative: str, unread: list[Unread]) -> bytes | None:
    # No link is followed and a pipe does not block: what is opened is what lies inside the folder.
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        reason = (
            "symbolic link, not followed" if path.is_symlink() else f"cannot be opened ({error.strerror})"
        )
        unread.append(Unread(relative, reason, may_play=not path.is_symlink()))
        return None
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            unread.append(Unread(relative, "not a regular file", may_play=False))
            return None
        largest = largest_size(relative)
        if status.st_size > largest:
            unread.append(Unread(relative, f"larger than {largest} bytes"))
            return None
        return stream.read(largest)


def largest_size(path: str) -> int:
    """The most bytes that are read of a file; notebooks carry their pictures with them."""
    return LARGEST_NOTEBOOK if path.endswith(".ipynb") else LARGEST_FILE


def _read_commit(git_dir: Path, *, name: str, revision: str) -> Sources:
    commit = resolve_commit(git_dir, revision)
    unread: list[Unread] = []
    wanted: list[TreeFile] = []
    total = 0
    configured: list[TreeFile] = []
    for entry in list_tree(git_dir, commit):
        if entry.path.endswith(SETTINGS_ENDINGS):
            if not entry.is_link and 0 <= entry.size <= LARGEST_SETTINGS and len(configured) < MOST_SETTINGS:
                configured.append(entry)
            continue
        if not entry.path.endswith((".py", ".ipynb")):
            continue
        if entry.is_link:
            unread.append(Unread(entry.path, "symbolic link, not followed", may_play=False))
        elif entry.size > largest_size(entry.path):
            unread.append(Unread(entry.path, f"larger than {largest_size(entry.path)} bytes"))
        elif total + entry.size > LARGEST_TOTAL or len(wanted) >= MOST_FILES:
            unread.append(Unread(entry.path, "the limit of files or bytes of one scan was reached"))
        else:
            total += max(entry.size, 0)
            wanted.append(entry)
    contents = read_blobs(git_dir, [entry.blob for entry in [*wanted, *configured]])
    settings: list[SettingsFile] = []
    for entry in configured:
        _add_settings(entry.path, contents.get(entry.blob), settings)
    files: list[SourceFile] = []
    for entry in wanted:
        if entry.blob in contents:
            _decode(entry.path, contents[entry.blob], files, unread)
        else:
            unread.append(Unread(entry.path, "this clone does not hold the file"))
    return Sources(
        name=name, commit=commit, files=tuple(files), unread=tuple(unread), settings=tuple(settings)
    )


_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def _decode(path: str, data: bytes, files: list[SourceFile], unread: list[Unread]) -> None:
    if path.endswith(".ipynb"):
        text = notebook_source(data)
        if text is None:
            unread.append(Unread(path, "not a notebook that can be read", may_play(data)))
        else:
            files.append(SourceFile(path=path, text=text))
        return
    if b"\0" in data:
        unread.append(Unread(path, "binary, not text", may_play=False))
        return
    encoding = "utf-8-sig"
    for line in data.split(b"\n", 2)[:2]:
        cookie = _COOKIE.match(line)
        if cookie:
            encoding = cookie[1].decode("ascii", errors="replace")
            break
    try:
        if codecs.lookup(encoding).name not in ENCODINGS:
            raise LookupError
        text = data.decode(encoding)
    except LookupError:
        unread.append(Unread(path, f"encoding '{encoding[:40]}' is not one that is read", may_play(data)))
    except UnicodeDecodeError:
        unread.append(Unread(path, f"not valid {encoding}", may_play(data)))
    else:
        files.append(SourceFile(path=path, text=text.removeprefix("\ufeff")))
