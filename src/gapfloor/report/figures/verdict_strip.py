"""A number line for one verdict: the floor, and each rule's held-out return with its interval."""

from __future__ import annotations

from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import GuideLine, PanelSpec, PointMark, Scale, Shape, interval_of, padded
from gapfloor.report.findings import FLOOR, TEST, Env, Findings
from gapfloor.tables.cells import estimate, is_number, mean_sem


def verdict_strip(findings: Findings, env: Env, budget: str) -> PanelSpec | None:
    """None where no rule has a held-out return and a floor."""
    rules = [rule for rule in findings.rules if rule != FLOOR]
    rows = [row for rule in rules if (row := findings.place(env, budget).comparison(rule, TEST))]
    if not rows:
        return None
    floor, floor_sem = rows[0].floor, rows[0].floor_sem
    shapes: list[Shape] = [
        GuideLine(
            at=floor, across="x", kind="floor", band=interval_of(floor, 1.96 * floor_sem), label="floor"
        )
    ]
    values = [floor]
    for at, row in enumerate(rows):
        # The interval of the call, so that it excludes the floor exactly when the call does.
        low, high = row.delta.interval
        interval = (row.floor + low, row.floor + high) if is_number(low) else None
        values += [row.mean, *(interval or ())]
        value, delta = (
            mean_sem(row.mean, row.sem).plain,
            estimate(row.delta.value, row.delta.interval).plain,
        )
        shapes.append(
            PointMark(
                x=row.mean,
                y=-float(at),
                ink=rule_ink(row.rule),
                tip=f"{row.rule}, held-out: {value}; Δ {delta}; {row.call}",
                interval=interval,
                along="x",
            )
        )
    low, high = padded(values)
    return PanelSpec(
        title="",
        summary=f"{findings.name(env)}: held-out return against the floor",
        x=Scale(low=low, high=high),
        y=Scale(low=0.4 - len(rows), high=0.6, ticks=()),
        shapes=tuple(shapes),
    )
