"""The levels one by one, as the page lists them: what each rule and the floor got, and where a level was replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapfloor.report.figure_data import LevelPanel, LevelPoint
from gapfloor.report.findings import Env, Findings, at_budget
from gapfloor.report.replays import Scene
from gapfloor.tables.cells import fixed
from gapfloor.text_tables import counted


def level_tables(
    findings: Findings, panels: Sequence[LevelPanel], scenes: Sequence[Scene]
) -> list[dict[str, Any]]:
    """One sortable table per game and budget, in the form that the page's template takes."""
    made: list[dict[str, Any]] = []
    for budget in findings.budgets:
        for env in (place.env for place in findings.places(budget)):
            key = (env.game, env.mode, budget)
            members = [panel for panel in panels if (panel.game, panel.mode, panel.budget) == key]
            members.sort(key=lambda panel: findings.rules.index(panel.rule))
            if members:
                made.append(
                    _table(findings, env, budget, members, _anchors(scenes, env), number=len(made) + 1)
                )
    return made


def _anchors(scenes: Sequence[Scene], env: Env) -> dict[tuple[str, int], str]:
    """Where the page replays a level of this game: level set and seed -> link."""
    return {
        (scene.level_set, scene.level_seed): f"#scene-{at}"
        for at, scene in enumerate(scenes, start=1)
        if scene.game == env.game
    }


def _table(
    findings: Findings,
    env: Env,
    budget: str,
    members: Sequence[LevelPanel],
    anchors: dict[tuple[str, int], str],
    *,
    number: int,
) -> dict[str, Any]:
    floors = {point.level_seed: point for panel in members for point in panel.points}
    points = {panel.rule: {point.level_seed: point for point in panel.points} for panel in members}
    level_set = members[0].level_set
    rows = []
    for seed in sorted(floors):
        floor = floors[seed]
        row = [
            _words(str(seed), sort=repr(float(seed)), align="r"),
            _value(floor.floor),
            _count(floor.floor_n),
        ]
        for panel in members:
            row += _of_rule(points[panel.rule].get(seed))
        link = anchors.get((level_set, seed), "")
        row.append(_words("watch" if link else "", sort="1" if link else "", href=link))
        rows.append(row)
    heads = ["Level", "Floor", "Episodes"]
    for panel in members:
        heads += [panel.rule, "− floor", "Episodes"]
    spans = [{"span": 1, "title": ""}, {"span": 2, "title": "Random floor"}]
    spans += [{"span": 3, "title": panel.rule} for panel in members]
    total = max(panel.n_levels for panel in members)
    thinned = f" {len(rows):,} of {total:,} levels are listed, evenly chosen." if len(rows) < total else ""
    return {
        "name": f"levels-{number}",
        "code": "",
        "title": f"Level by level: {findings.name(env)}{at_budget(budget)}",
        "status": "",
        "open": False,
        "caption": (
            f"Mean return on each of {counted(len(rows), 'held-out level')}: the random floor, and the runs under each "
            f"rule.{thinned} A level that was replayed links to its replay."
        ),
        "groups": [*spans, {"span": 1, "title": ""}],
        "headers": [{"text": head, "align": "r"} for head in heads] + [{"text": "Replay", "align": "l"}],
        "rows": rows,
        "notes": (),
        "files": [],
    }


def _of_rule(point: LevelPoint | None) -> list[dict[str, str]]:
    if point is None:
        return [_words("–"), _words("–"), _words("–")]
    return [_value(point.policy), _value(point.policy - point.floor, sign=True), _count(point.n)]


def _value(value: float, *, sign: bool = False) -> dict[str, str]:
    return _words(fixed(value, sign=sign).plain, sort=repr(value), align="r")


def _count(count: int) -> dict[str, str]:
    return _words(str(count), sort=str(count), align="r")


def _words(text: str, *, sort: str = "", align: str = "l", href: str = "") -> dict[str, str]:
    return {"text": text, "align": align, "sort": sort, "tone": "", "href": href}
