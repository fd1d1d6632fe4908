"""Why an answer is missing, and what would give it: one sentence each, for every path that is not resolved."""

from __future__ import annotations

from gapfloor.audit.judgement.paths import EvaluationPath

TRACE = "run `gapfloor audit trace -- COMMAND` to observe it"


def explain(path: EvaluationPath) -> tuple[str, ...]:
    """The reasons behind every question mark of a path."""
    found: list[str] = []
    if path.rule == "unresolved":
        found.append(_rule_reason(path))
    elif path.provenance == "unresolved":
        found.append(
            "where the rule comes from is not known: no training rollout of this repository acts through the same call"
        )
    if path.evaluates_heldout is None:
        found.append(_levels_reason(path))
    if path.in_loop is None:
        found.append(
            "in-loop is not decided: "
            + (
                "no script reaches this function"
                if not path.is_reached
                else "results of several updates are pooled"
            )
        )
    return tuple(found)


def _rule_reason(path: EvaluationPath) -> str:
    settings = [mark for mark in path.evidence if "differs between" in mark.what]
    if settings:
        mark = settings[0]
        return f"{mark.what} ({mark.file}:{mark.line}): pass --entry with the command that was used"
    known = [text for text in path.candidates if not text.startswith("not known")]
    unknown = [text.removeprefix("not known: ") for text in path.candidates if text.startswith("not known")]
    if unknown and known:
        return f"the action may be {', '.join(known[:3])}, or come from `{unknown[0]}`, which cannot be read: {TRACE}"
    if len(known) > 1:
        return (
            f"several rules are possible ({', '.join(known[:3])}) and no value in the code decides: {TRACE}"
        )
    if unknown:
        return f"the action comes from `{unknown[0]}`, which cannot be followed: {TRACE}"
    return f"the value that reaches `step` cannot be followed: {TRACE}"


def _levels_reason(path: EvaluationPath) -> str:
    if path.levels is None or path.levels == "not known":
        return (
            "held out is not decided: the constructor of the environment, or what it is given, cannot be read"
        )
    if not path.has_training:
        return f"held out is not decided: no training in this repository to compare with ({path.levels})"
    return f"held out is not decided: {path.levels} cannot be compared with the training levels"
