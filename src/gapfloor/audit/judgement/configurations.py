"""Evaluations that a framework runs by itself, read from its configuration files.

What the keys mean is data (`audit/data/configurations.json`): which key says how a text or an action is drawn at
evaluation, and what its values stand for. So "the baseline is greedy and the method is sampled" can be found where no
line of Python says it. A configuration file says what was meant to run, so its answers are likely, never proved.
"""

from __future__ import annotations

from typing import Any

from gapfloor.audit.interpreter.facts import table
from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.verdict import VALUE_BASED, EvaluationPath
from gapfloor.audit.reading.settings import FileSetting, read_settings
from gapfloor.audit.reading.sources import SourceFile


def configured_paths(files: list[SourceFile]) -> list[EvaluationPath]:
    """One path for each configuration file in which a framework's evaluation is described."""
    found = []
    for file in files:
        settings: list[FileSetting] | None = None
        # `requires` are keys that show that a file is the framework's, `rules` the keys that decide, in order.
        for fact in table("configurations")["frameworks"]:
            if not all(key.rsplit(".", 1)[-1] in file.text for key in fact["requires"]):
                continue
            settings = read_settings(file) if settings is None else settings
            path = _path_of(file, settings, fact)
            if path is not None:
                found.append(path)
                break
    return found


def _path_of(file: SourceFile, settings: list[FileSetting], fact: dict[str, Any]) -> EvaluationPath | None:
    stated = {".".join(one.path): one for one in settings}
    if not all(_value(stated, key) is not None for key in fact["requires"]):
        return None
    rule, decider = str(fact["default"]), None
    for row in fact["rules"]:
        one = _value(stated, row["key"])
        if one is not None and one.value is not None and str(one.value).lower() in row["values"]:
            rule, decider = str(row["values"][str(one.value).lower()]), one
            break
    first = _value(stated, fact["requires"][0])
    assert first is not None
    step = Mark(file.path, first.line, f"evaluation by {fact['name']}: {fact['requires'][0]}")
    marks = [step]
    if decider is not None:
        marks.append(Mark(file.path, decider.line, f"option '{decider.path[-1]}' is {decider.value!r}"))
    provenance = "config-option" if decider is not None else fact.get("provenance", "default-argument")
    level = "open" if rule == "unresolved" else "likely"
    return EvaluationPath(
        script=file.path,
        rule=rule,
        provenance=provenance if rule != "unresolved" else "unresolved",
        in_loop=False,
        evaluates_heldout=None,
        step=step,
        action=f"{fact['name']}'s own",
        agent="value-based" if VALUE_BASED.search(file.path) else None,
        evidence=tuple(marks),
        doubts=(f"{fact['name']} reads this file by itself: {fact['source']}",),
        grades={"evaluates_heldout": "open", "rule": level, "provenance": level, "in_loop": "likely"},
    )


def _value(stated: dict[str, FileSetting], key: str) -> FileSetting | None:
    """The setting whose path ends with the given keys."""
    found = [one for name, one in stated.items() if name == key or name.endswith("." + key)]
    return found[0] if found else None
