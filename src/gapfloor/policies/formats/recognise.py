"""What a bare file most likely is, found by looking at its first bytes and its table of contents.

So `model.zip` needs no prefix. Nothing of the file is loaded here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from gapfloor.errors import PolicyError
from gapfloor.input_files import read_policy_file
from gapfloor.policies.formats.archive import DamagedArchiveError, looks_like_zip, open_archive
from gapfloor.policies.formats.spec import FORMATS, NO_TORCHSCRIPT, PolicySpec


def recognised(spec: PolicySpec) -> PolicySpec:
    """The same with the format that the content of its file has."""
    path, prefixes = str(spec.path), ", ".join(f"{kind}:" for kind in FORMATS)
    if not os.path.lexists(path):
        shown = path if len(path) <= 200 and "\0" not in path else repr(path[:200] + "...")
        raise PolicyError(
            f"There is no file '{shown}', and it is not a policy that gapfloor can load: give a .safetensors "
            f"checkpoint, a run's folder, a file of another library (prefixes: {prefixes}), or package.module:factory."
        )
    kind = kind_of_content(read_policy_file(spec.path))
    if kind is None:
        raise PolicyError(
            f"'{path}' is not a file that gapfloor knows: it reads .safetensors checkpoints and, with a prefix, other "
            f"files ({prefixes})."
        )
    return PolicySpec(kind, spec.path, spec.options).checked()


def kind_of_content(content: bytes) -> str | None:
    """The prefix that a file's content calls for, or None if it is not known."""
    if looks_like_zip(content):
        return _kind_of_zip(content)
    if looks_like_safetensors(content) and b'"dtype"' in content[: 1 << 16]:
        return "statedict"
    # The first field of an ONNX model is its IR version, a small number; the producer's name or the graph follows.
    if len(content) > 4 and content[0] == 0x08 and content[1] < 32 and content[2] in (0x12, 0x1A, 0x3A, 0x42):
        return "onnx"
    is_old_torch = content[:1] == b"\x80" and b"torch" in content[:4096]  # torch's format before 1.6
    return "statedict" if is_old_torch else None


def _kind_of_zip(content: bytes) -> str | None:
    try:
        with open_archive(content) as archive:
            names = archive.namelist()
            if {"data", "policy.pth"} <= set(names):
                return "sb3"
    except DamagedArchiveError:
        return None
    refuse_torchscript(names)
    return "statedict" if any(name.endswith("/data.pkl") for name in names) else None


def refuse_torchscript(names: Iterable[str]) -> None:
    """Refuse an archive that `torch.jit.save` wrote, by the names of its entries."""
    if any(name.lower().endswith("/constants.pkl") for name in names):
        raise PolicyError(NO_TORCHSCRIPT)


def looks_like_safetensors(content: bytes) -> bool:
    """Whether a file starts as safetensors does: the length of a JSON header, then the header."""
    return content[8:9] == b"{" and int.from_bytes(content[:8], "little") <= len(content)
