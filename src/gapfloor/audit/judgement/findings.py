"""Findings for continuous integration: what is not stated, what a comment or a baseline accepts, and what is new.

A finding is known by its script, its rule and the text of the line that steps, not by a line number, so that it
survives edits elsewhere in the file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.rows import EvaluationPath
from gapfloor.errors import UsageError
from gapfloor.input_files import read_input_text
from gapfloor.settings import parse_json

#: Provenances that are a choice somebody made and can be seen to have made.
STATED = frozenset({"explicit-call-site", "config-option"})
SCHEMA = "gapfloor-audit-baseline/1"
_IGNORE = re.compile(r"#\s*gapfloor:\s*ignore\b")


@dataclass(frozen=True)
class Finding:
    """An evaluation path whose rule nobody stated, or whose rule cannot be read."""

    path: EvaluationPath
    mark: Mark
    fingerprint: str
    is_suppressed: bool
    """Whether a comment on the stepping line, or on the line above it, accepts it."""


def find_unstated(paths: tuple[EvaluationPath, ...], texts: Mapping[str, tuple[str, ...]]) -> list[Finding]:
    """The paths without a stated rule."""
    found = []
    for path in paths:
        if path.provenance in STATED:
            continue
        mark = path.step
        lines = texts.get(mark.file, ())
        near = lines[max(mark.line - 2, 0) : mark.line]
        found.append(
            Finding(path, mark, fingerprint(path, texts), any(_IGNORE.search(line) for line in near))
        )
    return found


def fingerprint(path: EvaluationPath, texts: Mapping[str, tuple[str, ...]]) -> str:
    """What makes two findings of two scans the same."""
    mark = path.step
    lines = texts.get(mark.file, ())
    line = lines[mark.line - 1].strip() if 0 < mark.line <= len(lines) else ""
    words = "\n".join([path.script, path.rule, path.provenance, str(path.levels), mark.file, line])
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def write_baseline(findings: list[Finding]) -> str:
    """A baseline file: the findings that are accepted as they are."""
    rows = [
        {
            "fingerprint": item.fingerprint,
            "script": item.path.script,
            "rule": item.path.rule,
            "provenance": item.path.provenance,
        }
        for item in findings
    ]
    return json.dumps({"schema": SCHEMA, "accepted": rows}, indent=1, ensure_ascii=False) + "\n"


def read_baseline(path: Path) -> set[str]:
    """The fingerprints of a baseline file."""
    if not path.exists():
        raise UsageError(f"There is no baseline file '{path}'. Write one with --write-baseline {path}.")
    try:
        document = parse_json(read_input_text(path), source=f"'{path}'")
    except UsageError as error:
        raise UsageError(f"The baseline cannot be read: {error} Write it with --write-baseline.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(
            f"'{path}' is not a baseline of this version ({SCHEMA}). Write it again with --write-baseline."
        )
    try:
        return {str(row["fingerprint"]) for row in document["accepted"]}
    except (KeyError, TypeError):
        raise UsageError(
            f"'{path}' is a baseline without a list of accepted findings. Write it again with --write-baseline."
        ) from None


@dataclass(frozen=True)
class PathChanges:
    """What changed between two scans of one repository."""

    added: tuple[EvaluationPath, ...]
    removed: tuple[EvaluationPath, ...]


def compare_scans(
    old: tuple[tuple[EvaluationPath, ...], Mapping[str, tuple[str, ...]]],
    new: tuple[tuple[EvaluationPath, ...], Mapping[str, tuple[str, ...]]],
) -> PathChanges:
    """The paths that only one of two scans has."""
    before = {fingerprint(path, old[1]): path for path in old[0]}
    after = {fingerprint(path, new[1]): path for path in new[0]}
    return PathChanges(
        added=tuple(path for key, path in after.items() if key not in before),
        removed=tuple(path for key, path in before.items() if key not in after),
    )
