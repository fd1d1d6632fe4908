"""A flag of a dependency that decides the rule: given at the call, left at its default, or out of sight."""

from __future__ import annotations

import ast

from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Frame,
    Guard,
    KnownValue,
    Mark,
    Unknown,
    describe,
)


def flagged(
    flag: str,
    position: int | None,
    default: bool | None,
    when_true: str,
    when_false: str,
    call: ast.Call,
    frame: Frame,
    mark: Mark,
) -> tuple[Alternative, ...]:
    """The action of a dependency whose flag decides the rule."""
    given: ast.expr | None = None
    if position is not None and len(call.args) > position:
        given = call.args[position]
    for keyword in call.keywords:
        if keyword.arg == flag:
            given = keyword.value
        elif keyword.arg is None:
            return (Alternative(Unknown(describe(call)), marks=(mark,)),)
    if given is not None:
        literal_flag = isinstance(given, ast.Constant)
        note = Mark(
            frame.module.path,
            given.lineno,
            f"{flag}={describe(given)} " + ("passed at the call" if literal_flag else ""),
        )
        test: ast.expr = given
        marks: tuple[Mark, ...] = (mark, note)
    elif default is None:
        return (Alternative(Action("unresolved", call, frame, needs_distribution=True), marks=(mark,)),)
    else:
        test = ast.copy_location(ast.Constant(default), call)
        frame.cache[test] = (Alternative(KnownValue(default), marks=(mark,), origin="default"),)
        marks = (mark,)
    return (
        Alternative(Action(when_true, call, frame, True), (Guard(test, True, frame),), marks),
        Alternative(Action(when_false, call, frame, True), (Guard(test, False, frame),), marks),
    )
