"""The page's figures: the same data as the printed ones, as inline SVG with a text for every mark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from gapfloor.report.figure_data import ActionClasses, Curve, LevelPanel
from gapfloor.report.findings import FLOOR, MERGED, TEST, TRAIN, Env, Findings, agent_name
from gapfloor.report.formats import estimate, fixed, is_number, mean_sem
from gapfloor.report.svg import Axis, Panel, css_name, drawing, line, mark, number_text, padded, text, y_axis


def return_panels(findings: Findings, budget: str) -> list[Panel]:
    """Return against floor under every rule, one panel a game: held-out filled, training hollow."""
    panels = []
    rules = [rule for rule in findings.rules if rule != FLOOR]
    for env in findings.envs(budget):
        rows = {
            (rule, level_set): row
            for rule in rules
            for level_set in (TRAIN, TEST)
            if (row := findings.comparison(env, budget, rule, level_set))
        }
        if not rows:
            continue
        shown = [rule for rule in rules if any(key[0] == rule for key in rows)]
        floors = {
            level_set: floor
            for level_set in (TRAIN, TEST)
            if (floor := findings.floor(env, level_set, budget=budget))
        }
        values = [row.test.mean + sign * _or_zero(row.test.sem) for row in rows.values() for sign in (-1, 1)]
        values += [floor.mean for floor in floors.values()]
        width, height = 260.0, 190.0
        y = Axis(*padded(values), height - 26, 10)
        parts = y_axis(y, 34, width - 8)
        for level_set, floor in floors.items():
            at = y.at(floor.mean)
            tip = f"random floor, {level_set}: {mean_sem(floor.mean, floor.sem).plain}"
            parts.append(
                f'<line class="floorline {"dashed" if level_set == TRAIN else ""}" x1="34" x2="{width - 8}" '
                f'y1="{at:.1f}" y2="{at:.1f}"/><line class="hit" tabindex="0" role="img" '
                f'aria-label="{escape(tip, quote=True)}" data-tip="{escape(tip, quote=True)}" x1="34" '
                f'x2="{width - 8}" y1="{at:.1f}" y2="{at:.1f}"/>'
            )
        slot = (width - 42) / max(1, len(shown))
        for at_rule, rule in enumerate(shown):
            centre = 34 + slot * (at_rule + 0.5)
            parts.append(text(centre, height - 8, rule))
            for level_set, shift in ((TRAIN, -0.16), (TEST, 0.16)):
                row = rows.get((rule, level_set))
                if row is None:
                    continue
                x = centre + shift * slot
                if is_number(row.test.sem):
                    parts.append(
                        line(
                            x,
                            y.at(row.test.mean - row.test.sem),
                            x,
                            y.at(row.test.mean + row.test.sem),
                            f"bar {css_name(rule)}",
                        )
                    )
                tip = (
                    f"{rule}, {level_set}: {mean_sem(row.test.mean, row.test.sem).plain} over {row.n} runs; "
                    f"Δ {estimate(row.test.delta, row.test.ci).plain}; {row.decision.call}"
                )
                parts.append(mark(rule, x, y.at(row.test.mean), filled=level_set == TEST, tip=tip))
        title = findings.name(env)
        panels.append(Panel(title, drawing(width, height, parts, f"{title}: return against floor")))
    return panels


def verdict_strip(findings: Findings, env: Env, budget: str) -> str:
    """A number line for a verdict: the floor, and each rule's held-out return with its interval."""
    rules = [rule for rule in findings.rules if rule != FLOOR]
    rows = [row for rule in rules if (row := findings.comparison(env, budget, rule, TEST))]
    if not rows:
        return ""
    values = [
        row.test.floor + end for row in rows for end in (*row.test.ci, row.test.delta) if is_number(end)
    ]
    width = 320.0
    height = 16.0 * len(rows) + 34
    x = Axis(*padded([*values, rows[0].test.floor]), 8, width - 8)
    floor_at = x.at(rows[0].test.floor)
    error = 1.96 * _or_zero(rows[0].test.floor_sem)
    band = (x.at(rows[0].test.floor - error), x.at(rows[0].test.floor + error))
    anchor = "start" if floor_at < width / 2 else "end"
    parts = [
        line(8, height - 18, width - 8, height - 18, "axis"),
        f'<rect class="floorband" x="{band[0]:.1f}" y="12" width="{max(1.0, band[1] - band[0]):.1f}" '
        f'height="{height - 30:.1f}"/>',
        line(floor_at, 12, floor_at, height - 18, "floorline"),
        text(floor_at, 9, "floor", anchor=anchor, kind="tick strong"),
    ]
    parts += [text(x.at(tick), height - 5, number_text(tick)) for tick in x.ticks(5)]
    for at, row in enumerate(rows):
        y = 22 + 16 * at
        if is_number(row.test.ci[0]):
            parts.append(
                line(
                    x.at(row.test.floor + row.test.ci[0]),
                    y,
                    x.at(row.test.floor + row.test.ci[1]),
                    y,
                    f"bar {css_name(row.rule)}",
                )
            )
        delta = estimate(row.test.delta, row.test.ci).plain
        tip = f"{row.rule}, held-out: {mean_sem(row.test.mean, row.test.sem).plain}; Δ {delta}; {row.decision.call}"
        parts.append(mark(row.rule, x.at(row.test.mean), y, filled=True, tip=tip, size=4.5))
    return drawing(width, height, parts, f"{findings.name(env)}: held-out return against the floor")


def gap_forest(findings: Findings, budget: str) -> str:
    """Gaps with their intervals and the floor's own gap, one line a game and rule."""
    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    lines = []
    for env in findings.envs(budget):
        for rule in rules:
            if gap := findings.gap(env, budget, rule):
                lines.append((env, gap))
    if not lines:
        return ""
    values = [value for _, gap in lines for value in (gap.gap.mean, *gap.gap.ci, gap.floor_gap)]
    games = list(dict.fromkeys(env for env, _ in lines))
    left, step = _margin(findings.name(env) for env in games), 17.0
    width = 464.0 + left
    height = 30 + step * len(lines) + 8 * len(games) + 26
    x = Axis(*padded(values, include=[0.0]), left + 8, width - 10)
    parts = [line(x.at(tick), 14, x.at(tick), height - 24, "grid") for tick in x.ticks(7)]
    parts += [text(x.at(tick), height - 8, number_text(tick)) for tick in x.ticks(7)]
    parts.append(line(x.at(0), 14, x.at(0), height - 24, "zero"))
    y = 24.0
    for game in games:
        members = [gap for env, gap in lines if env == game]
        top = y - 8
        parts.append(
            text(left, y + step * (len(members) - 1) / 2 + 4, findings.name(game), anchor="end", kind="name")
        )
        for gap in members:
            if is_number(gap.gap.ci[0]):
                parts.append(
                    line(x.at(gap.gap.ci[0]), y, x.at(gap.gap.ci[1]), y, f"bar {css_name(gap.rule)}")
                )
            floor_words = (
                f"; floor's own gap {fixed(gap.floor_gap, sign=True).plain}"
                if is_number(gap.floor_gap)
                else ""
            )
            size = estimate(gap.gap.mean, gap.gap.ci).plain
            tip = f"{findings.name(game)}, {gap.rule}: gap {size} over {gap.n} runs{floor_words}"
            parts.append(mark(gap.rule, x.at(gap.gap.mean), y, filled=True, tip=tip))
            y += step
        if is_number(members[0].floor_gap):
            at = x.at(members[0].floor_gap)
            parts.append(line(at, top, at, y - step + 8, "floortick"))
        y += 8
    return drawing(width, height, parts, "Gap by game and rule, with the floor's own gap")


def entropy_dumbbells(findings: Findings, budget: str) -> str:
    """Raw entropy against merged entropy, with the cuts and the maximum."""
    rows = [(env, row) for env in findings.envs(budget) if (row := findings.screen(env, budget))]
    if not rows:
        return ""
    left, step = _margin(findings.name(env) for env, _ in rows), 26.0
    width, height = 464.0 + left, 34 + step * len(rows) + 26
    maximum = max(row.maximum for _, row in rows)
    x = Axis(0, maximum * 1.03, left + 8, width - 10)
    parts = [line(x.at(tick), 20, x.at(tick), height - 24, "grid") for tick in x.ticks(6)]
    parts += [text(x.at(tick), height - 8, number_text(tick)) for tick in x.ticks(6)]
    for cut in findings.plan.cuts:
        if cut > maximum:  # games with few actions cannot reach it
            continue
        parts += [line(x.at(cut), 20, x.at(cut), height - 24, "cut"), text(x.at(cut), 14, f"{cut:g}")]
    parts += [line(x.at(maximum), 20, x.at(maximum), height - 24, "maximum"), text(x.at(maximum), 14, "max")]
    for at, (env, row) in enumerate(rows):
        y = 34 + step * at
        name = findings.name(env)
        parts.append(text(left, y + 4, name, anchor="end", kind="name"))
        ends = [value for value in (row.entropy_probe, row.merged_state, row.merged_game) if is_number(value)]
        if len(ends) > 1:
            parts.append(line(x.at(min(ends)), y, x.at(max(ends)), y, "link"))
        raw = row.entropy_probe if is_number(row.entropy_probe) else row.entropy
        parts.append(
            mark(
                "sampled",
                x.at(raw),
                y,
                filled=True,
                tip=f"{name}: raw entropy {fixed(raw, 3).plain} nats ({row.tier})",
            )
        )
        if is_number(row.merged_game):
            tip = f"{name}: merged by game {fixed(row.merged_game, 3).plain} nats ({row.merged_tier_game})"
            parts.append(mark(MERGED, x.at(row.merged_game), y, filled=False, tip=tip))
        if is_number(row.merged_state):
            tip = (
                f"{name}: merged by state {fixed(row.merged_state, 3).plain} nats ({row.merged_tier_state}); "
                f"{row.share:.0%} of raw entropy lies on equal actions"
            )
            parts.append(mark(MERGED, x.at(row.merged_state), y, filled=True, tip=tip))
    return drawing(width, height, parts, "Raw and merged entropy by game")


def level_scatters(findings: Findings, panels: Sequence[LevelPanel], budget: str) -> list[Panel]:
    """Per-level returns, runs against floor, one panel a game."""
    made = []
    for env in findings.envs(budget):
        here = [
            panel
            for panel in panels
            if (panel.game, panel.mode, panel.budget) == (env.game, env.mode, budget)
        ]
        if not here:
            continue
        points = [point for panel in here for point in panel.points]
        across = padded([point.floor for point in points], part=0.05)
        up = padded([point.policy for point in points], part=0.05)
        width, height = 260.0, 250.0
        x, y = Axis(*across, 36, width - 8), Axis(*up, height - 36, 8)
        parts = y_axis(y, 36, width - 8)
        parts += [text(x.at(tick), height - 22, number_text(tick)) for tick in x.ticks(4)]
        low, high = max(across[0], up[0]), min(across[1], up[1])
        if low < high:
            parts.append(line(x.at(low), y.at(low), x.at(high), y.at(high), "zero"))
        parts.append(text((36 + width - 8) / 2, height - 7, "random floor on the level", kind="tick"))
        for panel in sorted(here, key=lambda panel: panel.rule != findings.primary):
            for point in panel.points:
                tip = (
                    f"level {point.level_seed}, {panel.rule}: {fixed(point.policy).plain} ({point.n} episodes); "
                    f"floor {fixed(point.floor).plain} ({point.floor_n})"
                )
                parts.append(
                    f'<circle class="dot {css_name(panel.rule)}" data-tip="{escape(tip, quote=True)}" '
                    f'cx="{x.at(point.floor):.1f}" cy="{y.at(point.policy):.1f}" r="2.6"/>'
                )
        here.sort(key=lambda panel: findings.rules.index(panel.rule))
        counts = "above on " + ", ".join(f"{panel.above}/{panel.n_levels} {panel.rule}" for panel in here)
        title = findings.name(env)
        made.append(Panel(title, drawing(width, height, parts, f"{title}: {counts}"), counts))
    return made


def training_panels(findings: Findings, curves: Sequence[Curve]) -> list[Panel]:
    """Entropy during training, one panel a game and budget."""
    made = []
    keys = list(dict.fromkeys((curve.game, curve.mode, curve.budget) for curve in curves))
    low, high = findings.plan.cuts
    for game, mode, budget in keys:
        here = [curve for curve in curves if (curve.game, curve.mode, curve.budget) == (game, mode, budget)]
        width, height = 300.0, 210.0
        x = Axis(0, max(curve.steps[-1] for curve in here), 36, width - 10)
        top = math.log(15)
        values = [value for curve in here for value in curve.mean]
        y = Axis(*padded(values, include=[low, high, top]), height - 34, 8)
        parts = y_axis(y, 36, width - 10)
        parts += [line(36, y.at(cut), width - 10, y.at(cut), "cut") for cut in (low, high)]
        parts.append(line(36, y.at(top), width - 10, y.at(top), "maximum"))
        parts += [text(x.at(tick), height - 20, _steps_text(tick)) for tick in x.ticks(4)]
        for at, curve in enumerate(here):
            series = f"series-{at % 4}"
            if curve.n > 1:
                upper = [(s, m + e) for s, m, e in zip(curve.steps, curve.mean, curve.sem, strict=True)]
                lower = [(s, m - e) for s, m, e in zip(curve.steps, curve.mean, curve.sem, strict=True)]
                outline = " ".join(f"{x.at(s):.1f},{y.at(v):.1f}" for s, v in [*upper, *reversed(lower)])
                parts.append(f'<polygon class="band {series}" points="{outline}"/>')
            path = " ".join(
                f"{x.at(s):.1f},{y.at(m):.1f}" for s, m in zip(curve.steps, curve.mean, strict=True)
            )
            tip = f"{agent_name(curve.agent)} (n={curve.n}): {curve.mean[0]:.2f} → {curve.mean[-1]:.2f} nats"
            parts.append(
                f'<polyline class="curve {series}" tabindex="0" role="img" aria-label="{escape(tip, quote=True)}" '
                f'data-tip="{escape(tip, quote=True)}" points="{path}"/>'
            )
            end = (x.at(curve.steps[-1]) - 2, y.at(curve.mean[-1]) - 5 - 11 * at)
            parts.append(
                text(*end, f"{agent_name(curve.agent)} n={curve.n}", anchor="end", kind=f"tick {series}")
            )
        title = f"{game} {budget}".strip()
        made.append(Panel(title, drawing(width, height, parts, f"{title}: entropy during training")))
    return made


def class_grid(findings: Findings, classes: Sequence[ActionClasses], action_names: Sequence[str]) -> str:
    """Which actions do the same: a letter a class, one row a game; other actions, another grid."""
    grids = [_class_rows(rows, names) for names, rows in by_actions(findings, classes, action_names)]
    return "\n".join(grids)


def by_actions(
    findings: Findings, classes: Sequence[ActionClasses], action_names: Sequence[str]
) -> list[tuple[tuple[str, ...], list[ActionClasses]]]:
    """The games in their order, those with the same actions together; `action_names` where the data say none."""
    order = {env.game: at for at, env in enumerate(findings.all_envs)}
    groups: dict[tuple[str, ...], list[ActionClasses]] = {}
    for entry in sorted(classes, key=lambda entry: (order.get(entry.game, len(order)), entry.game)):
        groups.setdefault(entry.action_names or tuple(action_names), []).append(entry)
    return list(groups.items())


def _class_rows(rows: Sequence[ActionClasses], action_names: Sequence[str]) -> str:
    n_actions = max(len(entry.labels) for entry in rows)
    cell, left = 30.0, _margin(entry.game for entry in rows)
    top = max(74.0, 22 + 5.2 * max(len(name) for name in action_names))
    width, height = left + cell * n_actions + 60, top + cell * len(rows) + 8
    parts = []
    for action in range(n_actions):
        name = action_names[action] if action < len(action_names) else str(action)
        x = left + cell * (action + 0.5)
        parts.append(
            f'<text class="tick" transform="translate({x + 3:.1f},{top - 8:.1f}) rotate(-55)">{escape(name)}</text>'
        )
    for at, entry in enumerate(rows):
        y = top + cell * at
        parts.append(text(left - 8, y + cell / 2 + 4, entry.game, anchor="end", kind="name"))
        for action, label in enumerate(entry.labels):
            name = action_names[action] if action < len(action_names) else str(action)
            share = f"; taken on {entry.shares[action]:.0%} of steps" if action < len(entry.shares) else ""
            tip = f"{entry.game}: {name} is in class {_letter(label)}{share}"
            x = left + cell * action
            parts.append(
                f'<g data-tip="{escape(tip, quote=True)}"><rect class="class k{label % 8}" x="{x + 1:.1f}" '
                f'y="{y + 1:.1f}" width="{cell - 2:.1f}" height="{cell - 2:.1f}" rx="4"/>'
                f"{text(x + cell / 2, y + cell / 2 + 4, _letter(label), kind='letter')}</g>"
            )
        k = len(set(entry.labels))
        parts.append(
            text(left + cell * n_actions + 8, y + cell / 2 + 4, f"k = {k}", anchor="start", kind="name")
        )
    return drawing(width, height, parts, "Classes of actions with the same effect")


def _margin(names: Iterable[str]) -> float:
    """Room for names at the left: ProcGen's fit into the usual margin, those of other environments can be long."""
    return max(96.0, 7.2 * max(len(name) for name in names))


def _steps_text(steps: float) -> str:
    if steps >= 1e6:
        return f"{steps / 1e6:g}M"
    return f"{steps / 1e3:g}k" if steps >= 1e3 else f"{steps:g}"


def _letter(label: int) -> str:
    return chr(ord("A") + label) if label < 26 else str(label)


def _or_zero(value: float) -> float:
    return value if is_number(value) else 0.0
