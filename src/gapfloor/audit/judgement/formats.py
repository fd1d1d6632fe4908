"""A scan as JSON, as SARIF for code-scanning pages, and as Markdown for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.findings import Finding, PathChanges, find_unstated, step_mark
from gapfloor.audit.judgement.paths import EvaluationPath
from gapfloor.audit.judgement.reasons import explain, open_questions
from gapfloor.audit.judgement.verdict import AuditVerdict, is_demonstration, preferred
from gapfloor.audit.judgement.wording import in_words
from gapfloor.audit.scan import ScanResult
from gapfloor.escape import escape_markdown, markdown_code

SCHEMA = "gapfloor-audit-scan/2"
_SARIF_RULES = {
    "implicit-rule": "The action rule of an evaluation is inherited, not set.",
    "unresolved-rule": "The action rule of an evaluation could not be read from the code.",
    "inert-flag": "A parameter that chooses the action rule is accepted and never read.",
    "scan-failed": "The scanner itself failed; nothing follows from the absence of other results.",
}
#: Longer lists of evidence are cut in the report for people; JSON has them all.
_MOST_LINES = 14


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
                "reasons": list(explain(path)),
                "is_demonstration": is_demonstration(path),
                "is_reached": path.is_reached,
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


def failed_document(target: str, error: BaseException) -> dict[str, Any]:
    """What is written when the scanner itself fails: no verdict, and why."""
    return {
        "schema": SCHEMA,
        "repo": target,
        "commit": None,
        "entry": None,
        "error": f"{type(error).__name__}: {error}",
        "warnings": ["The scanner failed; nothing follows from this document."],
        "verdict": _verdict(AuditVerdict(None, "unresolved", "unresolved", None)),
        "scripts": [],
        "paths": [],
        "training": [],
        "inert_flags": [],
        "complete": False,
        "unread": [],
    }


def _verdict(verdict: AuditVerdict) -> dict[str, Any]:
    return {
        "evaluates_heldout": verdict.evaluates_heldout,
        "rule": verdict.rule,
        "provenance": verdict.provenance,
        "in_loop": verdict.in_loop,
    }


def _lines(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    return [{"file": mark.file, "line": mark.line, "what": mark.what} for mark in marks]


def as_sarif(result: ScanResult, *, version: str, accepted: set[str] | None = None) -> dict[str, Any]:
    """The scan in SARIF 2.1.0: one result per path without a stated rule and per inert flag.

    Findings that a comment accepts are suppressed in the source, those of a baseline outside it.
    """
    found = []
    for item in find_unstated(result.paths, result.texts):
        path = item.path
        name = "unresolved-rule" if path.rule == "unresolved" else "implicit-rule"
        text = f"{path.script}: rule {path.rule}, provenance {path.provenance}, levels {path.levels or 'not known'}."
        made = _sarif_result(name, text, path.evidence, item.mark)
        made["partialFingerprints"] = {"gapfloor/v1": item.fingerprint}
        if item.is_suppressed:
            made["suppressions"] = [{"kind": "inSource"}]
        elif accepted and item.fingerprint in accepted:
            made["suppressions"] = [{"kind": "external"}]
        found.append(made)
    for text in result.inert_flags:
        what, _, place = text.rpartition(" at ")
        file, _, line = place.rpartition(":")
        mark = Mark(file, int(line), what)
        found.append(_sarif_result("inert-flag", f"{what} is accepted and never read.", (mark,), mark))
    notes = [{"level": "warning", "message": {"text": text}} for text in result.warnings]
    return _sarif(found, version=version, notes=notes, is_successful=True)


def failed_sarif(error: BaseException, *, version: str) -> dict[str, Any]:
    """A SARIF document that says that the scanner failed."""
    note = {"level": "error", "message": {"text": f"{type(error).__name__}: {error}"}}
    return _sarif([], version=version, notes=[note], is_successful=False)


def _sarif(
    results: list[dict[str, Any]], *, version: str, notes: list[dict[str, Any]], is_successful: bool
) -> dict[str, Any]:
    driver = {
        "name": "gapfloor",
        "version": version,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in _SARIF_RULES.items()],
    }
    invocation = {"executionSuccessful": is_successful, "toolExecutionNotifications": notes}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "invocations": [invocation], "results": results}],
    }


def _sarif_result(name: str, text: str, marks: tuple[Mark, ...], at: Mark) -> dict[str, Any]:
    return {
        "ruleId": name,
        "level": "note" if name == "unresolved-rule" else "warning",
        "message": {"text": text},
        "locations": [_location(at)],
        "relatedLocations": [
            _location(mark) | {"id": number, "message": {"text": mark.what}}
            for number, mark in enumerate(marks)
        ],
    }


def _location(mark: Mark) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(mark.file)},
            "region": {"startLine": max(mark.line, 1)},
        }
    }


def as_markdown(result: ScanResult) -> str:
    """The scan as a Markdown report: warnings, the verdict, one row per script, then the evidence with its lines."""
    commit = f" at {result.commit[:12]}" if result.commit else ""
    lines = [f"# {escape_markdown(result.repo)}{commit}", ""]
    if result.entry:
        lines += [f"Command: {markdown_code(result.entry)}", ""]
    lines += [f"> **Warning.** {escape_markdown(text)}" for text in result.warnings]
    lines += [""] if result.warnings else []
    chosen = preferred(result.paths)
    lines += [_sentence(result), "", escape_markdown(in_words(result.verdict, chosen)), ""]
    questions = open_questions(result.verdict, chosen, result.training, is_complete=not result.warnings)
    if questions:
        lines += [
            "What is open, and what would resolve it:",
            "",
            *(f"- {escape_markdown(text)}" for text in questions),
            "",
        ]
    if not result.paths:
        lines.append("No evaluation path was found.")
    else:
        lines += _table(result.paths)
    for path in [*chosen, *(item for item in result.paths if item not in chosen)]:
        lines += _evidence(path, result)
    shown = {text for path in result.paths for text in path.inert_flags}
    inert = [text for text in result.inert_flags if text not in shown]
    if inert:
        lines += ["", "## Flags that are accepted and never read", ""]
        lines += [f"- {escape_markdown(text)}" for text in inert[:20]]
    if result.training:
        lines += ["", "## Training rollouts", ""]
        lines += [
            f"- {escape_markdown(item.script)}: {item.rule}, levels {escape_markdown(item.levels or '?')}"
            for item in result.training
        ]
    if result.unread:
        lines += ["", "## Not read", ""]
        lines += [
            f"- {markdown_code(item.file)}: {escape_markdown(item.reason)}" for item in result.unread[:40]
        ]
        lines += [f"- and {len(result.unread) - 40} more"] if len(result.unread) > 40 else []
    return "\n".join(lines) + "\n"


def _sentence(result: ScanResult) -> str:
    verdict = result.verdict
    return (
        f"Evaluates on held-out levels: **{_yes(verdict.evaluates_heldout)}** · rule: **{verdict.rule}** · "
        f"provenance: **{verdict.provenance}** · in-loop: **{_yes(verdict.in_loop)}**"
    )


def _table(paths: Iterable[EvaluationPath]) -> list[str]:
    lines = [
        "| script | held out | levels | rule | provenance | in-loop | seeded | train alike | agent |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for path in paths:
        script = path.script + (" (demonstration)" if is_demonstration(path) else "")
        cells = (
            script, _yes(path.evaluates_heldout), path.levels or "?", path.rule, path.provenance, _yes(path.in_loop),
            _yes(path.seeded_levels), _yes(path.same_procedure), path.agent or "?",
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
    return lines


def _evidence(path: EvaluationPath, result: ScanResult) -> list[str]:
    step = step_mark(path)
    title = escape_markdown(f"{path.script}: {path.rule}, stepped at {step.file}:{step.line}")
    lines = ["", f"## {title}", ""]
    lines += [f"- {escape_markdown(text)}" for text in explain(path)]
    for mark in path.evidence[:_MOST_LINES]:
        quoted = _quoted(mark, result)
        lines.append(
            f"- {markdown_code(f'{mark.file}:{mark.line}')} {escape_markdown(mark.what)}"
            + (f": {markdown_code(quoted)}" if quoted else "")
        )
    if len(path.evidence) > _MOST_LINES:
        lines.append(f"- and {len(path.evidence) - _MOST_LINES} more lines (see --json)")
    lines += [f"- inert flag: {escape_markdown(text)}" for text in path.inert_flags]
    lines += [f"- candidate: {escape_markdown(text)}" for text in path.candidates]
    return lines


def _quoted(mark: Mark, result: ScanResult) -> str:
    text = result.texts.get(mark.file, ())
    line = text[mark.line - 1].strip() if 0 < mark.line <= len(text) else ""
    return line if len(line) <= 90 else line[:87] + "..."


def changes_as_markdown(changes: PathChanges, *, base: str) -> str:
    """What changed since `base`, for a comment on a pull request."""
    if not changes.added and not changes.removed:
        return f"No evaluation path changed since {escape_markdown(base)}.\n"
    lines = [f"# Evaluation paths changed since {escape_markdown(base)}", ""]
    for title, paths in (("New or changed", changes.added), ("Gone or changed", changes.removed)):
        if paths:
            lines += [f"## {title}", "", *_table(paths), ""]
    return "\n".join(lines)


def describe_findings(findings: list[Finding]) -> str:
    """The findings in one sentence, for an error message."""
    scripts = ", ".join(dict.fromkeys(item.path.script for item in findings))
    number = "1 evaluation path has" if len(findings) == 1 else f"{len(findings)} evaluation paths have"
    return f"{number} no explicit action rule ({scripts})."


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "?"}[value]
