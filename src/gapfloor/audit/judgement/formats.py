"""A scan as JSON, as SARIF for code-scanning pages, and as Markdown for people: all from the same rows.

The report for people shows the evidence first: the sites of each script with their lines quoted, and the
constructors of training and test side by side. The verdict follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gapfloor import __version__
from gapfloor.audit.interpreter.facts import table
from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.verdict import FIELDS, AuditVerdict, EvaluationPath, preferred
from gapfloor.audit.pages import page
from gapfloor.escape import clean_text, markdown_code
from gapfloor.json_values import jsonable

if TYPE_CHECKING:
    from gapfloor.audit.scan import ScanResult

SCHEMA = "gapfloor-audit-scan/3"
Texts = Mapping[str, tuple[str, ...]]


def as_document(result: ScanResult) -> dict[str, Any]:
    """The scan as one JSON document."""
    return {
        "schema": SCHEMA,
        "repo": result.repo,
        "commit": result.commit,
        "entry": result.entry,
        "warnings": list(result.warnings),
        "verdict": _verdict(result.verdict),
        "scripts": [{"script": script} | _verdict(verdict) for script, verdict in result.scripts],
        "paths": [path.to_dict() for path in result.paths],
        "training": jsonable(result.training),
        "hints": jsonable(result.hints),
        "inert_flags": list(result.inert_flags),
        "complete": result.is_complete,
        "unread": [{"file": item.file, "reason": item.reason} for item in result.unread],
    } | ({"error": result.error} if result.error else {})


def _verdict(verdict: AuditVerdict) -> dict[str, Any]:
    return {**verdict.answers(), "levels": dict(verdict.levels)}


def as_sarif(result: ScanResult) -> dict[str, Any]:
    """The scan in SARIF 2.1.0: one result per path without a stated rule and per inert flag.

    Findings that a comment accepts are suppressed in the source. A scan that failed has no results and says so.
    """
    document: dict[str, Any] = json.loads(page("sarif.json", result=result, version=__version__))
    return document


def as_markdown(result: ScanResult) -> str:
    """The scan as a Markdown report: the evidence of each script, then the verdict, then what is open and why."""
    chosen = preferred(result.paths)
    scripts: dict[str, list[EvaluationPath]] = {}
    for path in sorted(
        result.paths,
        key=lambda path: (not path.reports, path not in chosen, path.is_demonstration, -path.score),
    ):
        scripts.setdefault(path.script, []).append(path)
    causes = [text for path in chosen if path.rule == "unresolved" for text in path.candidates[:4]]
    return page(
        "scan.md",
        result=result,
        scripts=scripts,
        verdicts=dict(result.scripts),
        reasons=dict.fromkeys([*(text for path in chosen for text in path.doubts), *causes]),
        chosen=chosen,
        meanings=table("words")["meanings"],
        measured=table("precision")["counts"]["rule"],
        fields=FIELDS,
        quoted=partial(_quoted, texts=result.texts),
    )


def _quoted(mark: Mark | None, texts: Texts) -> str:
    """A line with its place: `file:line` and the text of the line."""
    if mark is None:
        return "?"
    text = texts.get(mark.file, ())
    line = text[mark.line - 1].strip() if 0 < mark.line <= len(text) else ""
    line = line if len(line) <= 90 else line[:87] + "..."
    return markdown_code(f"{mark.file}:{mark.line}") + (f" {markdown_code(line)}" if line else "")


def describe_unstated(paths: list[EvaluationPath]) -> str:
    """The paths without a stated rule in one sentence, for an error message."""
    scripts = clean_text(", ".join(dict.fromkeys(path.script for path in paths)))
    number = "1 evaluation path has" if len(paths) == 1 else f"{len(paths)} evaluation paths have"
    return f"{number} no explicit action rule ({scripts})."
