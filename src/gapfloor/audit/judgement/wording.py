"""The verdict in sentences that a reviewer can paste into a review, each with the line that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.audit.judgement.paths import EvaluationPath
from gapfloor.audit.judgement.verdict import AuditVerdict

_RULES = {
    "sampled": "Actions are drawn from the policy",
    "argmax": "Actions are the policy's maximum or mean, without a draw",
    "epsilon-greedy": "Actions are greedy, except for a random action with a small probability",
    "mixed": "Actions are drawn from the policy, except for a random action with a small probability",
}
_ORIGINS = {
    "explicit-call-site": (
        "this is stated where the evaluation acts",
        ("passed at the call", "is called", "primitive"),
    ),
    "config-option": ("an option or a setting decides this", ("option '", "setting '")),
    "default-argument": ("this is a default that no call overrides", ("default argument",)),
    "training-rollout": ("the evaluation acts through the call that training uses", ("primitive",)),
}


def in_words(verdict: AuditVerdict, paths: Sequence[EvaluationPath]) -> str:
    """The verdict as a paragraph; `paths` are the ones that it speaks for."""
    sentences = [_levels(verdict, paths), _rule(verdict, paths), _weights(verdict, paths)]
    if verdict.provenance in ("default-argument", "training-rollout"):
        sentences.append(
            "The authors may want to say whether this rule was intended for the reported numbers."
        )
    return " ".join(sentence for sentence in sentences if sentence)


def _levels(verdict: AuditVerdict, paths: Sequence[EvaluationPath]) -> str:
    if verdict.evaluates_heldout is None:
        return "From the code alone it cannot be told whether the test levels are held out."
    if verdict.evaluates_heldout:
        texts = {
            path.levels for path in paths if path.evaluates_heldout and path.levels not in (None, "no levels")
        }
        return (
            f"The evaluation plays held-out levels ({texts.pop()})."
            if len(texts) == 1
            else ("The evaluation plays held-out levels.")
        )
    if not paths:
        return "No evaluation was found: the returns are those of the training rollouts."
    return "The evaluation plays the environment or the levels of training."


def _rule(verdict: AuditVerdict, paths: Sequence[EvaluationPath]) -> str:
    if verdict.rule not in _RULES:
        rules = sorted({path.rule for path in paths if path.rule != "unresolved"})
        several = f" Different paths follow different rules ({', '.join(rules)})." if len(rules) > 1 else ""
        return "The rule by which actions are chosen could not be decided." + several
    if verdict.provenance not in _ORIGINS:
        return f"{_RULES[verdict.rule]}."
    words, marks = _ORIGINS[verdict.provenance]
    return f"{_RULES[verdict.rule]}; {words}{_place(paths, marks)}."


def _place(paths: Sequence[EvaluationPath], words: tuple[str, ...]) -> str:
    """The line of the first path that shows where the rule comes from."""
    marks = paths[0].evidence if paths else ()
    for word in words:
        found = [mark for mark in marks if word in mark.what]
        if found:
            mark = found[0] if word == "is called" else found[-1]
            return f" ({mark.file}:{mark.line})"
    return ""


def _weights(verdict: AuditVerdict, paths: Sequence[EvaluationPath]) -> str:
    if not paths:
        return ""
    if verdict.in_loop is None:
        return "Whether weights change during an evaluation could not be decided."
    if verdict.in_loop:
        return "The environment lives on while weights change, so the number averages several policies."
    switch = _place(paths, ("learning only if",))
    if switch:
        return f"The evaluation runs the loop that trains, with learning switched off{switch}."
    return "Weights do not change during an evaluation."
