"""How a saved policy is named on the command line: `KIND:PATH,option=value,option=value`.

One line must say everything that changes the logits, because the line is what another process loads from and
what a reader copies. Options are refused when they are unknown, so that a misspelt one is never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from gapfloor.errors import PolicyError, UsageError, unknown_name

#: The loaders, by prefix, and the options that each reads besides the shared ones.
LOADERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sb3": (),
        "recurrent": (),
        "torchscript": ("transpose", "scale", "float", "output"),
        "onnx": ("transpose", "scale", "output"),
        "cleanrl": ("agent", "observation", "actions", "head"),
    }
)

#: Options that every loader reads: what was between the environment and the network during training.
SHARED_OPTIONS = ("key", "vecnormalize", "framestack", "gymstack", "trust")

_OPTION = re.compile(r",([A-Za-z_]+)=")

#: What `trust=yes` means, at the end of a refusal.
TRUST_MEANS = (
    "add ,trust=yes to unpickle it, which runs whatever code the file holds: only for files that you made "
    "or whose author you trust"
)


@dataclass(frozen=True)
class PolicySpec:
    """A loader's prefix, the file, and options.

    >>> spec = PolicySpec.parse("sb3:runs/model.zip,vecnormalize=stats.npz,framestack=4")
    >>> spec.kind, str(spec.path), spec.whole_number("framestack")
    ('sb3', 'runs/model.zip', 4)
    """

    kind: str
    path: Path
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def matches(text: str) -> bool:
        """Whether `text` begins with the prefix of a loader."""
        return text.partition(":")[0] in LOADERS

    @classmethod
    def parse(cls, text: str) -> PolicySpec:
        """Read one line; unknown and repeated options are refused."""
        kind, _, rest = text.partition(":")
        path, *pairs = _OPTION.split(rest)
        options: dict[str, str] = {}
        known = (*LOADERS[kind], *SHARED_OPTIONS)
        for name, value in zip(pairs[::2], pairs[1::2], strict=True):
            if name not in known:
                raise unknown_name(f"option of {kind}:", name, known)
            if name in options:
                raise UsageError(f"The option {name} is given twice in {text}: give it once.")
            options[name] = value
        if not path:
            raise UsageError(f"'{text}' names no file: write {kind}:PATH, with options as ,name=value.")
        return cls(kind, Path(path), options)

    @property
    def is_trusted(self) -> bool:
        """Whether the user said that what the files pickle may run."""
        return self.yes_or_no("trust")

    def text(self, name: str) -> str | None:
        """An option's text, or None."""
        return self.options.get(name)

    def yes_or_no(self, name: str) -> bool:
        """An option that is a word of the user's; absent means no."""
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
        """The path, which must be that of a file."""
        return existing_file(self.path)


def existing_file(path: Path) -> Path:
    """The path itself, refused when no file is there."""
    if not path.is_file():
        what = "a folder" if path.is_dir() else "missing"
        raise PolicyError(f"The policy file {path} is {what}: give the path of a file that exists.")
    return path
