"""How a saved policy is named on the command line: `KIND:PATH,option=value,option=value`.

The line says everything that changes the logits, because readers copy it. It is parsed once, where the user's own text
comes in: a name from anywhere else (a folder, a repository, a store) is a path, and is never part of a line. Unknown
options are refused, so that a misspelt one is never ignored. What a bare file is, so that `model.zip` needs no prefix,
is found by looking at its first bytes and its table of contents; nothing of it is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from gapfloor.errors import PolicyError, UsageError, shortened, unknown_name
from gapfloor.input_files import read_policy_file
from gapfloor.policies.formats.archive import DamagedArchiveError, looks_like_zip, open_archive

#: Options of exported networks: how observations are given to them, and which output holds the logits.
_EXPORTED = ("transpose", "scale", "output")


@dataclass(frozen=True)
class Format:
    """What is known about one kind of file."""

    loader: str
    """The module and the function that load it; the shared options are applied afterwards."""
    endings: tuple[str, ...] = ()
    """How such files usually end."""
    options: tuple[str, ...] = ()
    """The options that it reads in addition to the shared ones."""
    needed: str = ""
    """The options without which it cannot be loaded, as a user writes them."""


#: Prefix -> format.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "sb3": Format("sb3:load_sb3", (".zip",), ("extractor",)),
        "onnx": Format("onnx:load_onnx", (".onnx",), _EXPORTED),
        "cleanrl": Format(
            "cleanrl:load_cleanrl", (".cleanrl_model",),
            ("agent", "observation", "actions", "head", "weights"), ",agent=MODULE:CLASS",
        ),
        "statedict": Format(
            "module:load_state_dict_policy", (".pt", ".pth"),
            ("net", "args", "weights", *_EXPORTED), ",net=MODULE:CLASS,args=ARGUMENTS",
        ),
    }
)  # fmt: skip

#: Kinds that are not a format of another library: a file on the Hugging Face Hub, a checkpoint of gapfloor, an
#: untrained network, the user's own function, one whose policy only acts, and a name that is none of these.
HUB, CHECKPOINT, RANDOM_WEIGHTS, FACTORY, UNKNOWN = "hf", "checkpoint", "random-weights", "factory", "unknown"
ACTING = "acting"

#: Options of every format: what was between the environment and the network during training.
SHARED_OPTIONS = ("key", "vecnormalize", "framestack", "gymstack", "repeatstack")

#: How the weights of a checkpoint of gapfloor end: the last ones of a run, and those kept during training.
CHECKPOINT_ENDINGS = (".safetensors", ".weights")

_OPTION = re.compile(r",([A-Za-z_]+)=")

#: What to do with a file that only a pickle describes, at the end of a refusal: no file is unpickled.
NEEDS_FUNCTION = (
    "name a function of your own that loads it and returns the model, package.module:function, or save the weights "
    "alone"
)

#: What to do instead of saving a TorchScript program, whose reader in torch is not safe for files of others.
NO_TORCHSCRIPT = (
    "TorchScript files are not read (torch has deprecated them). Name a function that returns the network, "
    "package.module:factory, or export it with torch.onnx.export() and write onnx:FILE."
)


@dataclass(frozen=True)
class PolicySpec:
    """The prefix of a format, the file, and options."""

    kind: str
    path: Path
    options: Mapping[str, str] = field(default_factory=dict)

    def checked(self) -> PolicySpec:
        """The same; an option that its format does not have is refused."""
        known = (*FORMATS[self.kind].options, *SHARED_OPTIONS)
        for name in self.options:
            if name not in known:
                raise unknown_name(f"option of {self.kind}:", name, known)
        return self

    def whole_number(self, name: str, *, least: int = 1) -> int | None:
        """An option that is a whole number, or None."""
        value = self.options.get(name)
        if value is None:
            return None
        if not value.isdecimal() or int(value) < least:
            raise UsageError(
                f"The option {name}={value} is not a whole number of at least {least}: write {name}=4."
            )
        return int(value)

    def recognised(self) -> PolicySpec:
        """The same with the format that the content of its file has."""
        path, prefixes = str(self.path), ", ".join(f"{kind}:" for kind in FORMATS)
        if not os.path.lexists(path):
            raise PolicyError(
                f"There is no file '{shortened(path)}', and it is not a policy that gapfloor can load: give a "
                f".safetensors checkpoint, a run's folder, a file of another library (prefixes: {prefixes}), or "
                "package.module:factory."
            )
        kind = kind_of_content(read_policy_file(self.path))
        if kind is None:
            raise PolicyError(
                f"'{path}' is not a file that gapfloor knows: it reads .safetensors checkpoints and, with a prefix, "
                f"other files ({prefixes})."
            )
        return PolicySpec(kind, self.path, self.options).checked()


def meaning_of(name: str | Path) -> PolicySpec:
    """What a policy's name means; a path, or a text that is the name of a file, is never read as anything else.

    >>> spec = meaning_of("sb3:runs/model.zip,vecnormalize=stats.npz,framestack=4")
    >>> spec.kind, str(spec.path), spec.whole_number("framestack")
    ('sb3', 'runs/model.zip', 4)
    >>> meaning_of("random-weights:impala:3").kind, meaning_of("my_agents:make").kind
    ('random-weights', 'factory')
    """
    text = str(name)
    path, options = text, dict[str, str]()
    if not isinstance(name, Path) and not os.path.lexists(text):
        path, *pairs = _OPTION.split(text)
        prefix, colon, rest = path.partition(":")
        for option, value in zip(pairs[::2], pairs[1::2], strict=True):
            if option in options:
                raise UsageError(f"The option {option} is given twice in {text}: give it once.")
            options[option] = value
        if colon and prefix == "torchscript":
            raise PolicyError(NO_TORCHSCRIPT)
        if colon and prefix in (RANDOM_WEIGHTS, ACTING):
            return PolicySpec(prefix, Path(rest if prefix == ACTING else text))
        if colon and (prefix in FORMATS or prefix == HUB):
            if not rest:
                form = "hf:OWNER/NAME" if prefix == HUB else f"{prefix}:PATH"
                raise UsageError(f"'{text}' does not name a file: write {form}, and options as ,name=value.")
            spec = PolicySpec(prefix, Path(rest), options)
            # What a file on the Hub is, and so which options it has, is known when it has been fetched.
            return spec if prefix == HUB else spec.checked()
        if colon and not text.endswith(CHECKPOINT_ENDINGS):
            return PolicySpec(FACTORY, Path(text))
    if text.endswith(CHECKPOINT_ENDINGS) or os.path.isdir(text):
        return PolicySpec(CHECKPOINT, Path(text))
    return PolicySpec(UNKNOWN, Path(path), options)


def kind_of_content(content: bytes) -> str | None:
    """The prefix that a file's content calls for, or None if it is not known."""
    if looks_like_zip(content):
        try:
            with open_archive(content) as archive:
                names = archive.namelist()
                if {"data", "policy.pth"} <= set(names):
                    return "sb3"
        except DamagedArchiveError:
            return None
        refuse_torchscript(names)
        return "statedict" if any(name.endswith("/data.pkl") for name in names) else None
    if looks_like_safetensors(content) and b'"dtype"' in content[: 1 << 16]:
        return "statedict"
    # The first field of an ONNX model is its IR version, a small number; the producer's name or the graph follows.
    if len(content) > 4 and content[0] == 0x08 and content[1] < 32 and content[2] in (0x12, 0x1A, 0x3A, 0x42):
        return "onnx"
    is_old_torch = content[:1] == b"\x80" and b"torch" in content[:4096]  # torch's format before 1.6
    return "statedict" if is_old_torch else None


def refuse_torchscript(names: Iterable[str]) -> None:
    """Refuse an archive that `torch.jit.save` wrote, by the names of its entries."""
    if any(name.lower().endswith("/constants.pkl") for name in names):
        raise PolicyError(NO_TORCHSCRIPT)


def looks_like_safetensors(content: bytes) -> bool:
    """Whether a file starts as safetensors does: the length of a JSON header, then the header."""
    return content[8:9] == b"{" and int.from_bytes(content[:8], "little") <= len(content)
