"""A scan as JSON, as SARIF for code-scanning pages, and as Markdown for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.paths import EvaluationPath
from gapfloor.audit.scan import ScanResult

#: Provenances that are a choice somebody made and can be seen to have made.
STATED = frozenset({"explicit-call-site", "config-option"})

_SARIF_RULES = {
    "implicit-rule": "The action rule of an evaluation is inherited, not set.",
    "unresolved-rule": "The action rule of an evaluation could not be read from the code.",
    "inert-flag": "A parameter that chooses the action rule is accepted and never read.",
}


def without_stated_rule(result: ScanResult) -> list[EvaluationPath]:
    """The evaluation paths whose rule nobody set, or whose rule cannot be read."""
    return [path for path in result.paths if path.provenance not in STATED]


def as_document(result: ScanResult) -> dict[str, Any]:
    """The scan as one JSON document."""
    verdict = result.verdict
    return {
        "repo": result.repo,
        "commit": result.commit,
        "verdict": {
            "evaluates_heldout": verdict.evaluates_heldout,
            "rule": verdict.rule,
            "provenance": verdict.provenance,
            "in_loop": verdict.in_loop,
        },
        "paths": [
            {
                "script": path.script,
                "rule": path.rule,
                "provenance": path.provenance,
                "in_loop": path.in_loop,
                "inert_flags": list(path.inert_flags),
                "seeded_levels": path.seeded_levels,
                "levels": path.levels,
                "evidence": _lines(path.evidence),
                "evaluates_heldout": path.evaluates_heldout,
                "same_procedure": path.same_procedure,
                "agent": path.agent,
                "candidates": list(path.candidates),
            }
            for path in result.paths
        ],
        "training": [
            {
                "script": item.script,
                "rule": item.rule,
                "levels": item.levels,
                "evidence": _lines(item.evidence),
            }
            for item in result.training
        ],
        "inert_flags": list(result.inert_flags),
        "complete": result.is_complete,
        "unread": [{"file": item.file, "reason": item.reason} for item in result.unread],
    }


def _lines(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    return [{"file": mark.file, "line": mark.line, "what": mark.what} for mark in marks]


def as_sarif(result: ScanResult, *, version: str) -> dict[str, Any]:
    """The scan in SARIF 2.1.0: one result per path without a stated rule and per inert flag."""
    found = []
    for path in without_stated_rule(result):
        name = "unresolved-rule" if path.rule == "unresolved" else "implicit-rule"
        text = f"{path.script}: rule {path.rule}, provenance {path.provenance}, levels {path.levels or 'not known'}."
        found.append(_sarif_result(name, text, path.evidence))
    for text in result.inert_flags:
        what, _, place = text.rpartition(" at ")
        file, _, line = place.rpartition(":")
        mark = Mark(file, int(line), what)
        found.append(_sarif_result("inert-flag", f"{what} is accepted and never read.", (mark,)))
    driver = {
        "name": "gapfloor",
        "version": version,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in _SARIF_RULES.items()],
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": found}],
    }


def _sarif_result(name: str, text: str, marks: tuple[Mark, ...]) -> dict[str, Any]:
    stepped = [mark for mark in marks if mark.what.startswith("environment stepped")] or list(marks)
    return {
        "ruleId": name,
        "level": "note" if name == "unresolved-rule" else "warning",
        "message": {"text": text},
        "locations": [_location(mark) for mark in stepped[:1]],
        "relatedLocations": [
            _location(mark) | {"id": number, "message": {"text": mark.what}}
            for number, mark in enumerate(marks)
        ],
    }


def _location(mark: Mark) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": mark.file},
            "region": {"startLine": max(mark.line, 1)},
        }
    }


def as_markdown(result: ScanResult) -> str:
    """The scan as a short Markdown report."""
    verdict = result.verdict
    commit = f" at {result.commit[:12]}" if result.commit else ""
    lines = [
        f"# {result.repo}{commit}",
        "",
        f"Evaluates on held-out levels: **{_yes(verdict.evaluates_heldout)}** · rule: **{verdict.rule}** · "
        f"provenance: **{verdict.provenance}** · in-loop: **{_yes(verdict.in_loop)}**",
        "",
    ]
    if result.paths:
        lines += [
            "| script | held out | levels | rule | provenance | in-loop | seeded | train alike | agent |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {_cell(path.script)} | {_yes(path.evaluates_heldout)} | {_cell(path.levels or '?')} | {path.rule} | "
            f"{path.provenance} | {_yes(path.in_loop)} | {_yes(path.seeded_levels)} | {_yes(path.same_procedure)} | "
            f"{path.agent or '?'} |"
            for path in result.paths
        ]
    else:
        lines.append("No evaluation path was found.")
    for number, path in enumerate(result.paths, start=1):
        lines += ["", f"## Path {number}: {path.script}, {path.rule}", ""]
        lines += [f"- `{_cell(mark.file)}:{mark.line}` {_cell(mark.what)}" for mark in path.evidence]
        lines += [f"- inert flag: {_cell(text)}" for text in path.inert_flags]
        lines += [f"- candidate: {_cell(text)}" for text in path.candidates]
    if result.training:
        lines += ["", "## Training rollouts", ""]
        lines += [
            f"- {_cell(item.script)}: {item.rule}, levels {_cell(item.levels or '?')}"
            for item in result.training
        ]
    if result.unread:
        lines += ["", "## Not read", ""]
        lines += [f"- `{_cell(item.file)}`: {_cell(item.reason)}" for item in result.unread]
    if not result.is_complete:
        lines += ["", "The scan ran out of its budget: what is missing here may still be in the code."]
    return "\n".join(lines) + "\n"


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "?"}[value]


def _cell(text: str) -> str:
    # File names come from the scanned repository: nothing in them may break out of the table or the code span.
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ").replace("\r", " ")
