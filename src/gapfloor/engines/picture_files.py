"""ProcGen's picture files, with blank ones in place of those that a process will not look at.

The first engine of a process reads the pictures of all games: 1.5 s of processor time and 330 MB, most of it for large
backgrounds. A process that says beforehand whose pictures it will look at (`only_look_at`) reads blank ones for the
rest, and draws faster where nobody looks at anything. Only a command that plays known games and runs no code of the
user can say so: pictures are read once per process.

A blank picture is transparent and as small as its proportions allow. The proportions of a sprite decide the size of
what it stands for, and nothing else of a picture touches a game; `tests/engines/test_picture_files.py` compares states,
rewards and ends of episodes, and every pixel of the games that are looked at.

Row of `make bench`: "floor starpilot", in which start-up counts.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from gapfloor.leftovers import MEMORY, temporary_folder
from gapfloor.settings import shipped

#: The folders of each game's backgrounds.
BACKGROUND_FOLDERS: dict[str, set[str]] = {
    game: set(facts["backgrounds"]) for game, facts in shipped("data/procgen.toml")["games"].items()
}

_PNG = b"\x89PNG\r\n\x1a\n"


class _Pictures:
    """What this process has said and read."""

    promised: frozenset[str] | None = None
    """The games that it will look at; None: it may look at any."""
    are_read = False


def only_look_at(games: Iterable[str]) -> None:
    """Promise that this process looks at pictures of these games only; an engine of another game shows none.

    Without effect where pictures have been read already.
    """
    if not _Pictures.are_read:
        _Pictures.promised = frozenset(games)


def looked_at() -> frozenset[str] | None:
    """The games that this process promised to look at; None where it promised nothing."""
    return _Pictures.promised


def is_shown(game: str) -> bool:
    """Whether the pictures of a game are the real ones in this process."""
    return _Pictures.promised is None or game in _Pictures.promised


@contextlib.contextmanager
def picture_folder(original: Path) -> Iterator[Path]:
    """The folder from which the next engine reads its pictures; only the first engine of a process does."""
    if _Pictures.promised is None or _Pictures.are_read:
        yield original
    else:
        # Where files never reach a disk, unless the user has chosen a folder for temporary files.
        is_in_memory = "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK)
        with temporary_folder("pictures", within=str(MEMORY) if is_in_memory else None) as folder:
            try:
                _fill(Path(folder), original, _Pictures.promised)
            except (OSError, ValueError):  # no links, no space, or another layout of the files
                yield original
            else:
                yield Path(folder)
    _Pictures.are_read = True


def _fill(folder: Path, original: Path, games: frozenset[str]) -> None:
    """Links to the folders whose pictures are looked at, and blank pictures for the others."""
    kept = set().union(*(BACKGROUND_FOLDERS[game] for game in games))
    for source in original.iterdir():
        is_background = "_backgrounds" in source.name
        if games and (source.name in kept or not is_background):
            os.symlink(source, folder / source.name, target_is_directory=True)
        else:
            _fill_with_blanks(folder / source.name, source)


def _fill_with_blanks(folder: Path, source: Path) -> None:
    """One file of each size is written, and the others are links to it: a new file takes longer than reading it."""
    for place, _, names in os.walk(source):
        inside = folder / os.path.relpath(place, source)
        inside.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name.endswith(".png"):
                width, height = _size(os.path.join(place, name))
                blank = folder.parent / f"{width}x{height}.png"
                if not blank.exists():
                    blank.write_bytes(_blank(width, height))
                os.link(blank, inside / name)


def _size(path: str) -> tuple[int, int]:
    with open(path, "rb") as file:
        start = file.read(24)
    if start[:8] != _PNG:
        raise ValueError(f"{path} is not a PNG file")
    width, height = struct.unpack(">II", start[16:])
    divisor = math.gcd(width, height)
    return width // divisor, height // divisor


@functools.cache
def _blank(width: int, height: int) -> bytes:
    """A transparent PNG of this size."""
    rows = zlib.compress(bytes(height * (1 + 4 * width)), 1)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", rows),
        (b"IEND", b""),
    )
    return _PNG + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
