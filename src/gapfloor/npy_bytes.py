"""Arrays of numpy's own formats, read from a stranger's file without making room for numbers that are not there."""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

#: What Python's zip reader raises for an archive that is cut, damaged, encrypted or compressed by an unknown method.
DAMAGED_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    OverflowError,
    OSError,
)


def read_npz(path: Path, *, most_bytes: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a .npz file by name; a ValueError says that it is damaged or unpacks to more than `most_bytes`."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    left = most_bytes
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as file:
                    # What the directory says about sizes need not be true.
                    content = file.read(left + 1)
                left -= len(content)
                if left < 0:
                    raise ValueError(f"it unpacks to more than {most_bytes:,} bytes")
                if entry.filename.endswith(".npy"):
                    arrays[entry.filename.removesuffix(".npy")] = read_npy(content)
    except (*DAMAGED_ZIP, KeyError) as error:
        raise ValueError(str(error) or type(error).__name__) from None
    return arrays


def read_npy(content: bytes) -> npt.NDArray[Any]:
    """The array of a .npy file; objects are never unpickled, and a ValueError or KeyError says that it is damaged."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)  # type: ignore[no-untyped-call]
    read_header: Any = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    try:
        shape, _, dtype = read_header(stream)
    except (SyntaxError, tokenize.TokenError) as error:  # numpy reads the header as Python's own text
        raise ValueError(f"the header of an array cannot be read ({error})") from None
    # numpy makes room for the array before it sees that the numbers are missing.
    if math.prod(shape) * dtype.itemsize > len(content):
        raise ValueError(f"an array of the shape {shape} is cut off")
    return np.load(io.BytesIO(content), allow_pickle=False)  # type: ignore[no-any-return]
