"""What a bare file most likely is, found by looking at its first bytes and its table of contents.

A user who gives `model.zip` without a prefix is told the line to write. Nothing of the file is loaded.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

from gapfloor.errors import GapfloorError, PolicyError
from gapfloor.file_bytes import read_policy_file
from gapfloor.npy_bytes import DAMAGED_ZIP
from gapfloor.policies.formats.archive import looks_like_zip
from gapfloor.policies.formats.spec import FORMATS

#: What to do instead of saving a TorchScript program, whose reader in torch is not safe for files of others.
NO_TORCHSCRIPT = (
    "TorchScript files are not read (torch has deprecated them). Name a function that returns the network, "
    "package.module:factory, or export it with torch.onnx.export() and write onnx:FILE."
)


def suggest_line(name: str) -> str:
    """The refusal of a name that is not a policy, with the line that the user probably wants."""
    path, comma, options = name.partition(",")
    shown = name if len(name) <= 200 and "\0" not in name else repr(name[:200] + "...")
    usual = next((kind for kind, each in FORMATS.items() if path[-200:].endswith(each.endings)), None)
    if not os.path.lexists(path) and usual is None:
        return (
            f"'{shown}' is not a policy that gapfloor can load: give a .safetensors checkpoint, a run's folder, "
            f"a file with a prefix, e.g. sb3:model.zip (prefixes: {', '.join(f'{kind}:' for kind in FORMATS)}), or "
            "package.module:factory."
        )
    try:
        content = read_policy_file(Path(path))
        refuse_flax(content, name=path)
        found = kind_of_content(content)
    except GapfloorError as error:
        return str(error)
    kind = found or usual
    if kind is None:
        return (
            f"'{shown}' is not a file that gapfloor knows: it reads .safetensors checkpoints and, with a prefix, other "
            f"files ({', '.join(f'{each}:' for each in FORMATS)})."
        )
    line = f"{kind}:{path}{FORMATS[kind].needed}{comma}{options}"
    return (
        f"'{shown}' needs a prefix that says what it is. It looks like {FORMATS[kind].meaning}: write {line}"
    )


def kind_of_content(content: bytes) -> str | None:
    """The prefix that a file's content calls for, or None if it is not known."""
    if looks_like_zip(content):
        return _kind_of_zip(content)
    if content[8:9] == b"{" and b'"dtype"' in content[: 1 << 16]:
        return "statedict"
    if _starts_as_onnx(content):
        return "onnx"
    if content[:1] == b"\x80" and b"torch" in content[:4096]:  # torch's format before 1.6
        return "statedict"
    return None


def _kind_of_zip(content: bytes) -> str | None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            start = b""
            if {"data", "policy.pth"} <= set(names):
                with archive.open("data") as file:
                    start = file.read(1 << 16)
    except DAMAGED_ZIP:
        return None
    if {"data", "policy.pth"} <= set(names):
        return "recurrent" if b"recurrent" in start else "sb3"
    refuse_torchscript(names)
    if any(name.endswith("/data.pkl") for name in names):
        return "statedict"
    return None


def refuse_torchscript(names: Iterable[str]) -> None:
    """Refuse an archive that `torch.jit.save` wrote, by the names of its entries."""
    if any(name.lower().endswith("/constants.pkl") for name in names):
        raise PolicyError(NO_TORCHSCRIPT)


def _starts_as_onnx(content: bytes) -> bool:
    # The first field of a model is its IR version, a small number; the producer's name or the graph follows.
    return (
        len(content) > 4 and content[0] == 0x08 and content[1] < 32 and content[2] in (0x12, 0x1A, 0x3A, 0x42)
    )


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
    """Refuse a file of Flax (cleanba, CleanRL's JAX scripts), which has the ending of a torch file; others pass."""
    if is_flax(content):
        raise PolicyError(
            f"{name} holds arrays of a Flax network (JAX, e.g. cleanba), and the network itself is not in the file: "
            "write a function that builds the network, loads the file and returns a function from observations to "
            "logits, and name it as package.module:function."
        )
