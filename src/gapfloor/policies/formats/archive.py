"""Zip archives of untrusted origin: every entry is read and checked once, and only what was read is used.

Two readers of one zip can see two different archives: the format has several places that say where the
directory is, names may repeat, and some readers ignore the case of a name. A loader that checks an archive here must
not hand the file's bytes to another reader afterwards; `rebuilt_archive` writes the checked entries into a new archive
that has one directory and nothing else.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator, Mapping

from gapfloor.errors import PolicyError
from gapfloor.input_files import check_growth
from gapfloor.npy_bytes import DAMAGED_ZIP

#: More entries than any saved policy has.
MOST_ENTRIES = 20_000

#: What every entry of a zip's directory begins with.
_ENTRY_MARK = b"PK\x01\x02"


class DamagedArchiveError(Exception):
    """Raised when bytes are not a zip archive that can be read whole; the loader says what the file should be."""


def rebuilt_archive(entries: Mapping[str, bytes]) -> bytes:
    """A new archive with these entries, in their order and uncompressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def looks_like_zip(content: bytes) -> bool:
    """Whether a file starts as a zip archive does."""
    return content[:4] in (b"PK\x03\x04", b"PK\x05\x06")


@contextlib.contextmanager
def open_archive(content: bytes) -> Iterator[zipfile.ZipFile]:
    """An archive whose directory is small enough to be read; the entries are not checked yet."""
    # Counted in the bytes, because opening an archive already makes an object of every entry.
    if content.count(_ENTRY_MARK) > MOST_ENTRIES:
        raise DamagedArchiveError(f"more than {MOST_ENTRIES:,} entries")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield archive
    except DAMAGED_ZIP as error:
        raise DamagedArchiveError(f"{type(error).__name__}: {error}") from None


def read_archive(content: bytes, *, name: str) -> dict[str, bytes]:
    """Every entry of an archive; `name` is the file's name in a refusal.

    Names that are equal, or that differ only in case, are refused: readers disagree about which one counts. So
    is an archive whose entries would take far more memory than the file has bytes.
    """
    entries: dict[str, bytes] = {}
    with open_archive(content) as archive:
        check_growth(sum(each.file_size for each in archive.infolist()), len(content), what=name)
        seen: set[str] = set()
        for each in archive.infolist():
            if each.filename.lower() in seen:
                raise PolicyError(
                    f"{name} holds two entries named {each.filename!r}, and readers disagree about which one counts: "
                    "save the policy again."
                )
            seen.add(each.filename.lower())
            with archive.open(each) as file:
                # Read to the stated size: without it, zipfile first unpacks whatever is there.
                entries[each.filename] = file.read(each.file_size)
    return entries
