"""Trained agents that a study takes from another folder and that are not there yet.

Agents often finish one after another. A study does what it can with those that exist, and the rest waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gapfloor.study.model import Study
from gapfloor.study.tasks import Task
from gapfloor.text_tables import counted

_SHOWN = 6


def without_awaited(tasks: Sequence[Task], absent: Iterable[str]) -> tuple[list[Task], list[str]]:
    """The tasks that can be done without the absent runs, and the names of those that wait."""
    waiting = {f"train {run}" for run in absent}
    ready = []
    for task in tasks:
        if task.name in waiting or waiting & set(task.needs):
            waiting.add(task.name)
        else:
            ready.append(task)
    return ready, [task.name for task in tasks if task.name in waiting]


def awaited_sentence(study: Study, absent: Sequence[str]) -> str:
    """Which agents are not there yet, and where they are looked for."""
    folders = sorted({group.checkpoints for group in study.runs if group.checkpoints})
    more = f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
    verb = "is" if len(absent) == 1 else "are"
    return (
        f"{counted(len(absent), 'agent')} {verb} not in {', '.join(folders)} yet: "
        f"{', '.join(absent[:_SHOWN])}{more}."
    )
