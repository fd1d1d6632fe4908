"""Arrays of numpy's own format, read from bytes of a stranger without making room for numbers that are not there."""

from __future__ import annotations

import io
import math
import tokenize
from typing import Any

import numpy as np
import numpy.typing as npt


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
