"""Findings for continuous integration: what is not stated, and what a comment accepts.

A finding is known by its script, its rule and the text of the line that steps, not by a line number, so that it
survives edits elsewhere in the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.rows import EvaluationPath

#: Provenances that are a choice somebody made and can be seen to have made.
STATED = frozenset({"explicit-call-site", "config-option"})
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
