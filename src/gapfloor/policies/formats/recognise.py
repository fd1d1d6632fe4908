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
from gapfloor.policies.formats.flax_file import refuse_flax
from gapfloor.policies.formats.spec import LOADERS

#: What to do instead of saving a TorchScript program, whose reader in torch is not safe for files of others.
NO_TORCHSCRIPT = (
    "TorchScript files are not read (torch has deprecated them). Name a function that returns the network, "
    "package.module:factory, or export it with torch.onnx.export() and write onnx:FILE."
)

#: What a file's ending suggests if its content cannot be looked at.
_ENDINGS = {
    ".zip": "sb3",
    ".pt": "statedict",
    ".onnx": "onnx",
    ".pth": "statedict",
    ".cleanrl_model": "cleanrl",
    ".ckpt": "statedict",
}


def suggest_line(name: str) -> str:
    """The refusal of a name that is not a policy, with the line that the user probably wants."""
    path, comma, options = name.partition(",")
    shown = name if len(name) <= 200 and "\0" not in name else repr(name[:200] + "...")
    if not os.path.lexists(path) and Path(path[:200]).suffix not in _ENDINGS:
        return (
            f"'{shown}' is not a policy that gapfloor can load: give a .safetensors checkpoint, a run's folder, "
            f"a file with a prefix, e.g. sb3:model.zip (prefixes: {', '.join(f'{kind}:' for kind in LOADERS)}), or "
            "package.module:factory."
        )
    try:
        content = read_policy_file(Path(path))
        refuse_flax(content, name=path)
        found = kind_of_content(content)
    except GapfloorError as error:
        return str(error)
    kind = found or _ENDINGS.get(Path(path).suffix)
    if kind is None:
        return (
            f"'{shown}' is not a file that gapfloor knows: it reads .safetensors checkpoints and, with a prefix, other "
            f"files ({', '.join(f'{each}:' for each in LOADERS)})."
        )
    more = _NEEDED.get(kind, "")
    line = f"{kind}:{path}{more}{comma}{options}"
    return f"'{shown}' needs a prefix that says what it is. It looks like {_MEANING[kind]}: write {line}"


#: What each kind of file is, in words.
_MEANING = {
    "sb3": "a Stable-Baselines3 model",
    "recurrent": "a RecurrentPPO model",
    "onnx": "an ONNX model",
    "cleanrl": "weights of a CleanRL agent",
    "statedict": "weights of a torch network",
}

#: The options without which a kind of file cannot be loaded.
_NEEDED = {"cleanrl": ",agent=MODULE:CLASS", "statedict": ",net=MODULE:CLASS,args=ARGUMENTS"}


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
