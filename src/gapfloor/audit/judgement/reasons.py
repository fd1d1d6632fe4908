"""Why an answer is missing, and what would give it: one sentence each, for every path that is not resolved."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.audit.judgement.paths import EvaluationPath, TrainingRollout
from gapfloor.audit.judgement.verdict import AuditVerdict

TRACE = "run `gapfloor audit trace -- COMMAND` to observe it"
_ENTRY = "pass --entry with the command that was used"
MOST_OPEN = 5


def open_questions(
    verdict: AuditVerdict,
    paths: Sequence[EvaluationPath],
    training: Sequence[TrainingRollout],
    *,
    is_complete: bool,
) -> list[str]:
    """Why the verdict has question marks, and what would resolve them; `paths` are the ones that it speaks for."""
    if not paths:
        return [] if verdict.provenance == "n/a" else [_without_paths(training)]
    found = []
    for name in ("rule", "provenance", "evaluates_heldout", "in_loop"):
        if getattr(verdict, name) not in (None, "unresolved"):
            continue
        answers = {str(getattr(path, name)) for path in paths} - {"None", "unresolved"}
        if len(answers) > 1:
            found.append(_disagreement(name, paths))
    found += [reason for path in paths for reason in explain(path)]
    if not is_complete and not found:
        found.append("nothing is firm while the warning above stands; the paths below are what was found")
    return list(dict.fromkeys(found))[:MOST_OPEN]


def _disagreement(name: str, paths: Sequence[EvaluationPath]) -> str:
    words = {"evaluates_heldout": "held out", "in_loop": "in-loop"}
    shown = {True: "yes", False: "no"}
    first: dict[str, str] = {}
    for path in paths:
        value = getattr(path, name)
        if value not in (None, "unresolved"):
            first.setdefault(str(shown.get(value, value)), path.script)
    each = ", ".join(f"{value} in {script}" for value, script in first.items())
    return f"{words.get(name, name)} differs between paths ({each}): {_ENTRY}"


def _without_paths(training: Sequence[TrainingRollout]) -> str:
    if not training:
        return (
            "no step of an environment could be followed from a script: pass --entry with the evaluation script, "
            f"or {TRACE}"
        )
    places = ", ".join(dict.fromkeys(item.script for item in training))
    return (
        f"environments are stepped by training alone as far as the code can be followed ({places}), but not all of it "
        f"can be: pass --entry with the evaluation script, or {TRACE}"
    )


def explain(path: EvaluationPath) -> tuple[str, ...]:
    """The reasons behind every question mark of a path."""
    found: list[str] = []
    if path.rule == "unresolved":
        found.append(_rule_reason(path))
    elif path.provenance == "unresolved":
        found.append(
            "where the rule comes from is not known: no call states it, and no training rollout acts through the same "
            "function; read the acting function, or " + _ENTRY
        )
    if path.evaluates_heldout is None:
        found.append(_levels_reason(path))
    if path.in_loop is None:
        found.append(
            "in-loop is not decided: "
            + (
                "no script of the repository reaches this function; pass --entry with the script that does"
                if not path.is_reached
                else "results of several updates are pooled before they are reported"
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
    made = [mark for mark in path.evidence if mark.what.startswith("environment made")]
    place = f" ({made[-1].file}:{made[-1].line})" if made else ""
    if path.levels is None or path.levels == "not known":
        return (
            f"held out is not decided: the constructor of the environment{place}, or what it is given, cannot be read; "
            f"compare its arguments with those of training, or {_ENTRY}"
        )
    if path.levels == "no levels" and path.has_training:
        return (
            f"held out is not decided: the environment has no level numbers, and the call that makes it{place} cannot "
            f"be matched with the one of training; compare their arguments, or {_ENTRY}"
        )
    if not path.has_training:
        return (
            f"held out is not decided: no training in this script to compare with ({path.levels}{place}); "
            "compare with the levels in the training script"
        )
    return (
        f"held out is not decided: {path.levels}{place} cannot be compared with the training levels; "
        f"if a setting decides, {_ENTRY}"
    )
