"""How a saved policy is named on the command line: `KIND:PATH,option=value,option=value`.

The line says everything that changes the logits, because readers copy it. It is parsed once, where the user's own text
comes in: a name from anywhere else (a folder, a repository, a store) is a path, and is never part of a line. Unknown
options are refused, so that a misspelt one is never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from gapfloor.errors import PolicyError, UsageError, unknown_name
from gapfloor.input_files import check_input_file

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
    """The prefix of a format, the file, and options.

    >>> spec = PolicySpec.parse("sb3:runs/model.zip,vecnormalize=stats.npz,framestack=4")
    >>> spec.kind, str(spec.path), spec.whole_number("framestack")
    ('sb3', 'runs/model.zip', 4)
    """

    kind: str
    path: Path
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def matches(text: str) -> bool:
        """Whether `text` begins with the prefix of a format."""
        kind = text.partition(":")[0]
        return kind in FORMATS or kind == HUB

    @classmethod
    def parse(cls, text: str) -> PolicySpec:
        """Read one line; unknown and repeated options are refused."""
        kind, _, rest = text.partition(":")
        path, options = split_options(rest)
        if not path:
            form = "hf:OWNER/NAME" if kind == HUB else f"{kind}:PATH"
            raise UsageError(f"'{text}' does not name a file: write {form}, and options as ,name=value.")
        spec = cls(kind, Path(path), options)
        # What a file on the Hub is, and so which options it has, is known when it has been fetched.
        return spec if kind == HUB else spec.checked()

    def checked(self) -> PolicySpec:
        """The same; an option that its format does not have is refused."""
        known = (*FORMATS[self.kind].options, *SHARED_OPTIONS)
        for name in self.options:
            if name not in known:
                raise unknown_name(f"option of {self.kind}:", name, known)
        return self

    def text(self, name: str) -> str | None:
        """An option's text, or None."""
        return self.options.get(name)

    def yes_or_no(self, name: str) -> bool:
        """An option that is yes or no; no if it is absent."""
        value = self.options.get(name, "no")
        if value not in ("yes", "no"):
            raise UsageError(f"The option {name}={value} is neither yes nor no: write {name}=yes.")
        return value == "yes"

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

    def file(self) -> Path:
        """The path, refused when there is no file."""
        return check_input_file(self.path, error=PolicyError)


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """A path and its options; one that is given twice is refused.

    >>> split_options("model.zip,framestack=4")
    ('model.zip', {'framestack': '4'})
    """
    path, *pairs = _OPTION.split(text)
    options: dict[str, str] = {}
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        if name in options:
            raise UsageError(f"The option {name} is given twice in {text}: give it once.")
        options[name] = value
    return path, options
