"""The works that a methods paragraph may cite, read from `templates/works.bib`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import gapfloor
from gapfloor.report.text_templates import read_template

_ENTRY = re.compile(r"@\w+\{(\w+),\n.*?\n\}\n", re.DOTALL)


@dataclass(frozen=True)
class BibEntry:
    """One work."""

    bibtex: str
    """Its entry, ready to print."""

    @property
    def short(self) -> str:
        """How a text without BibTeX names it, e.g. "Holm, 1979"; empty for software, which the text names itself."""
        found = re.search(r"author = \{(.*)\}", self.bibtex)
        if found is None:
            return ""
        names = [name.split(",")[0] for name in found[1].split(" and ")]
        year = re.search(r"year = \{(.*)\}", self.bibtex)
        who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        return f"{who}, {year[1] if year else 'n.d.'}"


def _read_works() -> dict[str, BibEntry]:
    text = read_template("works.bib")
    text = text.replace("VERSION", gapfloor.__version__)
    return {found[1]: BibEntry(found[0]) for found in _ENTRY.finditer(text)}


#: By BibTeX key.
WORKS: Mapping[str, BibEntry] = _read_works()


def to_bibtex(keys: Iterable[str]) -> str:
    """The entries of these works, in the order of their keys."""
    return "\n".join(WORKS[key].bibtex for key in sorted(set(keys)))
