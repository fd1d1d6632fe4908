"""The methods paragraph of a paper: the sentences of `templates/methods.j2` that hold for these data."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import gapfloor
from gapfloor.escape import clean_text, escape_markdown, escape_tex
from gapfloor.plan.lock import NO_KEY
from gapfloor.report.source import ReportSource
from gapfloor.report.text_templates import said
from gapfloor.settings import shipped_text

_WORK = re.compile(r"@\w+\{(\w+),\n.*?\n\}\n", re.DOTALL)
#: Key of a work -> its BibTeX entry, ready to print.
WORKS = {
    found[1]: found[0]
    for found in _WORK.finditer(
        shipped_text("report/templates/works.bib").replace("VERSION", gapfloor.__version__)
    )
}


@dataclass(frozen=True)
class MethodsClause:
    """One sentence, without its final stop."""

    topic: str
    text: str
    cites: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """With its stop, and the works that it cites in brackets; software is named by the text itself."""
        names = [name for key in self.cites if (name := _name_of_work(WORKS[key]))]
        cited = f" ({'; '.join(names)})" if names else ""
        return f"{self.text}{cited}."


@dataclass(frozen=True)
class Methods:
    """A methods paragraph."""

    clauses: tuple[MethodsClause, ...]

    def text(self) -> str:
        """For a terminal or an e-mail."""
        return " ".join(clean_text(clause.sentence) for clause in self.clauses) + "\n"

    def markdown(self) -> str:
        """For a README or a model card."""
        return " ".join(escape_markdown(clean_text(clause.sentence)) for clause in self.clauses) + "\n"

    def tex(self) -> str:
        r"""For a paper: works are cited by \cite, with the entries of `bibtex`."""
        sentences = []
        for clause in self.clauses:
            cited = f"~\\cite{{{','.join(clause.cites)}}}" if clause.cites else ""
            sentences.append(f"{escape_tex(clause.text)}{cited}.")
        return "\n".join(sentences) + "\n"

    def bibtex(self) -> str:
        """The entries that `tex` cites."""
        return "\n".join(
            WORKS[key] for key in sorted({key for clause in self.clauses for key in clause.cites})
        )


def build_methods(source: ReportSource) -> Methods:
    """The paragraph for a report's source."""
    findings = source.findings
    rows, problems = findings.results.floor_comparisons, findings.results.problems
    found = said(
        "methods.j2",
        no_key=NO_KEY,
        source=source,
        findings=findings,
        games=[findings.name(env) for env in findings.all_envs],
        is_procgen=any(engine.startswith("procgen") for engine in source.provenance.engines),
        has_shared_levels=any(p.kind == "levels" and "both as training" in p.what for p in problems),
        margins=sorted({round(m, 3) for row in rows if not math.isnan(m := row.equivalence.margin)}),
        n_copies=sum({(row.game, row.mode, row.budget): row.n_copies for row in rows}.values()),
    )
    return Methods(tuple(MethodsClause(topic, text, tuple(cites)) for (topic, *cites), text in found))


def _name_of_work(bibtex: str) -> str:
    """How a text without BibTeX names a work, e.g. "Holm, 1979"; empty for one without authors."""
    authors, year = (re.search(rf"{name} = \{{(.*)\}}", bibtex) for name in ("author", "year"))
    if authors is None:
        return ""
    names = [name.split(",")[0] for name in authors[1].split(" and ")]
    who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"{who}, {year[1] if year else 'n.d.'}"
