"""What was observed next to what the scanner reads: the same lines, side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from gapfloor.audit.scan import ScanResult, scan
from gapfloor.audit.trace.observe import ObservedPath, TraceResult
from gapfloor.errors import UsageError
from gapfloor.escape import escape_markdown, markdown_code

#: Words of the scanner for what a trace calls by another name.
_SAME = {("argmax", "deterministic"), ("deterministic", "argmax")}


def scan_traced_command(observed: TraceResult) -> ScanResult | None:
    """A scan of the current folder for the traced command; None when the command starts no script of the folder."""
    try:
        return scan(str(Path.cwd()), entry=" ".join(observed.command))
    except UsageError:
        return None


def static_rule(path: ObservedPath, static: ScanResult | None) -> str | None:
    """What the scanner says about the observed line; None when it has no path there."""
    if static is None:
        return None
    rules = {item.rule for item in static.paths if (item.step.file, item.step.line) == (path.file, path.line)}
    rules |= {
        item.rule
        for item in static.training
        for mark in item.evidence
        if (mark.file, mark.line) == (path.file, path.line)
    }
    return rules.pop() if len(rules) == 1 else None


def agreement(observed: str, static: str | None) -> str:
    """Whether the two agree, in one word or two.

    >>> agreement("sampled", "argmax"), agreement("deterministic", "argmax")
    ('differ', 'agree')
    """
    if static is None or "unresolved" in (observed, static):
        return "not comparable"
    return "agree" if observed == static or (observed, static) in _SAME else "differ"


def trace_document(observed: TraceResult, static: ScanResult | None) -> dict[str, Any]:
    """The trace as one JSON document."""
    rows = []
    for path in observed.paths:
        said = static_rule(path, static)
        rows.append(asdict(path) | {"static_rule": said, "agreement": agreement(path.rule, said)})
    return {
        "schema": "gapfloor-audit-trace/1",
        "command": list(observed.command),
        "exit_code": observed.exit_code,
        "n_updates": observed.n_updates,
        "paths": rows,
        "unseen": list(observed.unseen),
    }


def trace_markdown(observed: TraceResult, static: ScanResult | None) -> str:
    """The trace as a short report."""
    lines = [f"# Observed: {markdown_code(' '.join(observed.command))}", ""]
    if not observed.paths:
        lines += ["No environment step was observed.", ""]
    else:
        lines += [
            "| line | environment | observed rule | from the code | in-loop | steps | episodes | policy versions |",
            "|---|---|---|---|---|---|---|---|",
        ]
    for path in observed.paths:
        said = static_rule(path, static)
        shown = escape_markdown(said or "–")
        if agreement(path.rule, said) == "differ":
            shown += " (**differs**)"
        line = escape_markdown(f"{path.file}:{path.line} ({path.function})")
        lines.append(
            f"| {line} | {escape_markdown(path.environment)} | **{path.rule}** | {shown} | "
            f"{'yes' if path.in_loop else 'no'} | {path.n_steps} | {path.n_episodes} | {path.n_policy_versions} |"
        )
    for path in observed.paths:
        lines += ["", escape_markdown(f"{path.file}:{path.line}")]
        lines += [f"- {escape_markdown(text)}" for text in path.evidence] or [
            "- no draw and no maximum equals the actions"
        ]
        if path.n_random:
            lines.append(f"- {path.n_random} of {path.n_steps} actions were drawn without the policy")
        if path.called_from:
            lines.append(f"- called from {escape_markdown(', '.join(path.called_from))}")
    lines += ["", f"Optimiser steps: {observed.n_updates}."]
    if static is not None and static.inert_flags:
        lines.append("Accepted and never read: " + escape_markdown("; ".join(static.inert_flags)) + ".")
    if observed.unseen:
        lines.append("Not seen: " + escape_markdown("; ".join(observed.unseen)) + ".")
    return "\n".join(lines) + "\n"
