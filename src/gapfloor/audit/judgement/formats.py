"""A scan as JSON, as SARIF for code-scanning pages, and as Markdown for people: all from the same rows.

The report for people shows the evidence first: the sites of each script with their lines quoted, and the
constructors of training and test side by side. The verdict follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gapfloor import __version__
from gapfloor.audit.interpreter.facts import table
from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.verdict import FIELDS, AuditVerdict, EvaluationPath, plain, preferred
from gapfloor.escape import clean_text, escape_markdown, markdown_code

if TYPE_CHECKING:
    from gapfloor.audit.scan import ScanResult

SCHEMA = "gapfloor-audit-scan/3"
#: More scripts and sites than these are left to --json.
_MOST_SCRIPTS = 4
_MOST_SITES = 4
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
        "training": [{key: plain(value) for key, value in vars(item).items()} for item in result.training],
        "hints": plain(result.hints),
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
    found = []
    for path in result.paths:
        if path.is_stated:
            continue
        name = "unresolved-rule" if path.rule == "unresolved" else "implicit-rule"
        text = f"{path.script}: rule {path.rule} ({path.grades['rule']}), provenance {path.provenance}."
        made = _sarif_result(name, text, path.evidence, path.step)
        if path.is_accepted(result.texts):
            made["suppressions"] = [{"kind": "inSource"}]
        found.append(made)
    for text in result.inert_flags:
        what, _, place = text.rpartition(" at ")
        file, _, line = place.rpartition(":")
        mark = Mark(file, int(line), what)
        found.append(_sarif_result("inert-flag", f"{what} is accepted and never read.", (mark,), mark))
    notes = [{"level": "warning", "message": {"text": text}} for text in result.warnings]
    notes += [{"level": "error", "message": {"text": result.error}}] if result.error else []
    document = deepcopy(table("words")["sarif"])
    document["runs"][0]["tool"]["driver"]["version"] = __version__
    invocation = {"executionSuccessful": not result.error, "toolExecutionNotifications": notes}
    document["runs"][0] |= {"invocations": [invocation], "results": found}
    return dict(document)


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
    """The scan as a Markdown report: the evidence of each script, then the verdict, then what is open and why."""
    commit = f" at {result.commit[:12]}" if result.commit else ""
    lines = [f"# {escape_markdown(result.repo)}{commit}", ""]
    if result.entry:
        lines += [f"Command: {markdown_code(result.entry)}", ""]
    lines += [f"> **Warning.** {escape_markdown(text)}" for text in result.warnings]
    lines += [""] if result.warnings else []
    chosen = preferred(result.paths)
    ranked = sorted(
        result.paths,
        key=lambda path: (not path.reports, path not in chosen, path.is_demonstration, -path.score),
    )
    scripts = list(dict.fromkeys(path.script for path in ranked))
    verdicts = dict(result.scripts)
    groups: dict[tuple[str, ...], list[str]] = {}
    for script in scripts:
        sites = [path for path in ranked if path.script == script]
        verdict = verdicts.get(script) if len(scripts) > 1 else None  # that of one script stands below
        groups.setdefault(tuple(_script(sites, verdict, result)), []).append(script)
    lines += ["## Evidence", ""] if groups else []
    for body, same in list(groups.items())[:_MOST_SCRIPTS]:
        lines += [f"### {escape_markdown(same[0])}", ""]
        lines += [f"The same holds for {escape_markdown(_listed(same[1:]))}.", ""] if same[1:] else []
        lines += body
    rest = sum(map(len, list(groups.values())[_MOST_SCRIPTS:]))
    lines += [f"{rest} more scripts are in the JSON document (--json).", ""] if rest else []
    lines += [] if result.paths else ["No evaluation path was found.", ""]
    hints = [_quoted(hint, result.texts) for hint in result.hints]
    lines += [*_section("Lines that speak of an evaluation:", hints, 8), "## Verdict", ""]
    lines += [*_verdict_lines(result, chosen), ""]
    causes = [text for path in chosen if path.rule == "unresolved" for text in path.candidates[:4]]
    reasons = dict.fromkeys([*(text for path in chosen for text in path.doubts), *causes])
    rollouts = [f"{one.script}: {one.rule}, levels: {one.levels or '?'}" for one in result.training]
    unread = [f"{markdown_code(one.file)}: {escape_markdown(one.reason)}" for one in result.unread]
    lines += _section("Assumed, or not known:", [*map(escape_markdown, reasons)], 8)
    lines += _section(
        "Flags that are accepted and never read:", [*map(escape_markdown, result.inert_flags)], 20
    )
    lines += _section("Training rollouts:", [*map(escape_markdown, rollouts)], 6)
    lines += _section("## Not read", unread, 40)
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, rows: list[str], most: int) -> list[str]:
    """A list under its title, or nothing; what is beyond `most` rows is in the JSON document."""
    more = [f"- and {len(rows) - most} more (--json)"] if len(rows) > most else []
    return [title, "", *(f"- {row}" for row in rows[:most]), *more, ""] if rows else []


def _listed(names: list[str]) -> str:
    shown = [*names[:5], *([f"{len(names) - 5} more scripts"] if len(names) > 5 else [])]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _script(sites: list[EvaluationPath], verdict: AuditVerdict | None, result: ScanResult) -> list[str]:
    """One script: its sites, the best first, with quoted lines, and the constructors of training and test."""
    script, texts, training = sites[0].script, result.texts, result.training
    is_demo = all(path.is_demonstration for path in sites)
    lines = ["By its name this is a demonstration.", ""] if is_demo else []
    shown = {(path.step.file, path.step.line, path.rule, path.provenance): path for path in reversed(sites)}
    rows = [path for path in sites if path in shown.values()]
    for path in rows[:_MOST_SITES]:
        words = "?" if path.provenance == "unresolved" else path.provenance
        decided = _quoted(path.decided_by, texts) if path.decided_by else words
        lines += [
            f"- rule **{path.rule}** ({path.grades['rule']})",
            f"    - step: {_quoted(path.step, texts)}",
            f"    - chosen by: {_quoted(path.chosen_by, texts)}",
            f"    - decided by: {decided}",
        ]
    lines += [f"- {len(rows) - _MOST_SITES} more sites (--json)"] if len(rows) > _MOST_SITES else []
    best = rows[0]
    other = next((item for item in training if item.script == script), None)
    made = (best.training_constructor, best.training_levels)
    if made[0] is None and other is not None:
        made = (other.constructor, other.levels)
    if best.constructor or made[0]:
        lines.append("- environments")
        for name, constructor, levels in (("training", *made), ("test", best.constructor, best.levels)):
            code = markdown_code(constructor) if constructor else "not found"
            played = "" if levels == "no levels" else f", levels: {escape_markdown(levels or '?')}"
            lines.append(f"    - {name}: {code}{played}")
    if verdict is not None:
        answers = (
            f"{FIELDS[name]} **{_yes(getattr(verdict, name))}** ({verdict.levels.get(name, 'open')})"
            for name in ("rule", "evaluates_heldout", "in_loop")
        )
        lines.append(f"- verdict: {', '.join(answers)}")
    return [*lines, ""]


def _quoted(mark: Mark | None, texts: Texts) -> str:
    """A line with its place: `file:line` and the text of the line."""
    if mark is None:
        return "?"
    text = texts.get(mark.file, ())
    line = text[mark.line - 1].strip() if 0 < mark.line <= len(text) else ""
    line = line if len(line) <= 90 else line[:87] + "..."
    return markdown_code(f"{mark.file}:{mark.line}") + (f" {markdown_code(line)}" if line else "")


def _verdict_lines(result: ScanResult, chosen: list[EvaluationPath]) -> list[str]:
    """The verdict: one line for each answer, with its level of evidence and what it means."""
    verdict = result.verdict
    words = meanings(verdict, chosen)
    lines = [
        f"- {FIELDS[name]}: **{_yes(getattr(verdict, name))}** ({verdict.levels.get(name, 'open')})"
        + (f". {escape_markdown(words[name])}" if words[name] else "")
        for name in ("rule", "provenance", "evaluates_heldout", "in_loop")
    ]
    if verdict.provenance in ("default-argument", "training-rollout"):
        lines += ["", "The authors may want to say whether this rule was intended for the reported numbers."]
    if verdict.levels.get("rule") == "likely":
        right, total = precision("rule")
        lines += ["", f"A likely rule was right in {right} of {total} audits by hand. Read the lines above."]
    return lines


def precision(name: str) -> tuple[int, int]:
    """How often a likely answer was right when it was last measured: right answers, and all."""
    row = table("precision")["counts"][name]
    return int(row["likely right"]), int(row["likely right"]) + int(row["likely wrong"])


def meanings(verdict: AuditVerdict, chosen: list[EvaluationPath]) -> dict[str, str]:
    """What each answer of a verdict means, with the line that shows who set the rule and the levels that are played."""
    words = {name: table("words")["meanings"][name].get(_yes(getattr(verdict, name)), "") for name in FIELDS}
    found = [one for path in chosen for one in (path.decided_by, path.chosen_by, path.step) if one]
    levels = {path.levels for path in chosen if path.levels}
    if verdict.provenance == "n/a":
        return words | {"evaluates_heldout": ""}
    if words["provenance"]:
        words["provenance"] += f" ({found[0].file}:{found[0].line})." if found else "."
    if words["evaluates_heldout"]:
        shown = levels.pop() if len(levels) == 1 else "no levels"
        words["evaluates_heldout"] += "." if shown == "no levels" else f" ({shown})."
    return words


def describe_unstated(paths: list[EvaluationPath]) -> str:
    """The paths without a stated rule in one sentence, for an error message."""
    scripts = clean_text(", ".join(dict.fromkeys(path.script for path in paths)))
    number = "1 evaluation path has" if len(paths) == 1 else f"{len(paths)} evaluation paths have"
    return f"{number} no explicit action rule ({scripts})."


def _yes(value: bool | str | None) -> str:
    return value if isinstance(value, str) else {True: "yes", False: "no", None: "?"}[value]
