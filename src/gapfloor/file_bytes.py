"""Policy files as bytes that are read once, so that what is checked is also what is loaded.

A file that is checked under its path and then opened again by another reader can change in between, and two readers can
understand one file differently. Loaders therefore read a file here, check these bytes, load from these
bytes and hash these bytes.
"""

from __future__ import annotations

from pathlib import Path

from gapfloor.errors import PolicyError
from gapfloor.input_files import read_input_bytes

#: The largest file that is read. Policies of RL are far smaller; a sparse file of terabytes is not a policy.
MOST_FILE_BYTES = 4 << 30

#: What the contents of a file may always take in memory, however small the file is.
ALWAYS_ALLOWED_BYTES = 256 << 20

#: How much larger than its file the contents may be. Tensors hardly compress, so ten times is already generous.
MOST_GROWTH = 10


def read_policy_file(path: Path) -> bytes:
    """The bytes of a regular file; anything else (a folder, a pipe, a device) is refused without waiting for it."""
    return read_input_bytes(path, error=PolicyError, most_bytes=MOST_FILE_BYTES)


def check_growth(n_bytes: int, file_bytes: int, *, what: str) -> None:
    """Refuse contents that would take far more memory than the file has bytes, before room is made for them."""
    if n_bytes > max(ALWAYS_ALLOWED_BYTES, MOST_GROWTH * file_bytes):
        raise PolicyError(
            f"{what} would take {size_in_words(n_bytes)} of memory when unpacked, although the file has only "
            f"{size_in_words(file_bytes)}: it is damaged or was made to fill the memory, so it is not read."
        )


def size_in_words(n_bytes: int) -> str:
    """A size for a sentence.

    >>> size_in_words(6_400_000_000), size_in_words(812)
    ('6.4 GB', '812 bytes')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} bytes"
