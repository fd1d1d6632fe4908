"""Files that Flax wrote, e.g. those of cleanba and of CleanRL's JAX scripts: they are recognised and refused.

They hold arrays without the network that they belong to, in MessagePack. CleanRL gives them the same ending as files of
torch.
"""

from __future__ import annotations

from gapfloor.errors import PolicyError

#: First bytes of a MessagePack map with at least one entry, and of a text, which is what a first key is.
_MAPS = frozenset(range(0x81, 0x90)) | {0xDE, 0xDF}
_LENGTHS = {0xDE: 2, 0xDF: 4}
_TEXTS = frozenset(range(0xA1, 0xC0)) | {0xD9}


def is_flax(content: bytes) -> bool:
    """Whether a file begins as a tree of arrays that Flax wrote.

    >>> is_flax(bytes([0x82, 0xA1]) + b"0"), is_flax(bytes([0x80, 0x02]) + b"}q")  # a map with the key "0"; a pickle
    (True, False)
    """
    if len(content) < 3 or content[0] not in _MAPS:
        return False
    first_key = 1 + _LENGTHS.get(content[0], 0)
    return len(content) > first_key and content[first_key] in _TEXTS


def refuse_flax(content: bytes, *, name: str) -> None:
    """Raise an error that says what to do with a file of Flax; other files pass."""
    if is_flax(content):
        raise PolicyError(
            f"{name} holds arrays of a Flax network (JAX, e.g. cleanba), and the network itself is not in the file: "
            "write a function that builds the network, loads the file and returns a function from observations to "
            "logits, and name it as package.module:function."
        )
