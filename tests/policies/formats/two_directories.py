"""A zip with two central directories: Python's reader sees one set of entries, torch's reader another."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

_END = struct.Struct("<4s4H2LH")


def _parts(entries: Mapping[str, bytes], *, moved_by: int = 0) -> tuple[bytes, bytes]:
    """Local entries and central directory; the directory says that entries begin `moved_by` bytes later."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        offsets = {each.filename: each.header_offset for each in archive.infolist()}
    content = buffer.getvalue()
    *_, size, start, _ = _END.unpack(content[-_END.size :])
    directory = bytearray(content[start : start + size])
    position = 0
    for name in entries:
        struct.pack_into("<L", directory, position + 42, offsets[name] + moved_by)
        position += 46 + len(name)
    return content[:start], bytes(directory)


def two_directories(for_python: Mapping[str, bytes], for_torch: Mapping[str, bytes]) -> bytes:
    """An archive in which `zipfile` finds `for_python` and torch finds `for_torch`; both have the same names.

    Python takes the directory that lies directly before the end record and moves all offsets accordingly; torch takes
    the one that the end record points to.
    """
    assert list(for_python) == list(for_torch)
    padded = dict(for_torch)
    last = list(padded)[-1]
    excess = sum(map(len, for_python.values())) - sum(map(len, padded.values()))
    padded[last] += b"\0" * max(0, excess)
    theirs, their_directory = _parts(padded)
    ours, _ = _parts(for_python)
    shift = len(theirs) - len(ours)
    assert shift >= 0
    _, our_directory = _parts(for_python, moved_by=shift)
    assert len(our_directory) == len(their_directory)
    n, size, start = len(for_python), len(their_directory), len(theirs)
    end = _END.pack(b"PK\x05\x06", 0, 0, n, n, size, start, 0)
    return theirs + their_directory + ours + our_directory + end
