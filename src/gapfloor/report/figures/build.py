"""The figures of a report, each described once: what is drawn where, and what it means.

The writers, `print_figure` and `page_figure`, read these descriptions. A builder gives None where the data lack what
its figure needs; `build_figures` adds the budget to names and titles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gapfloor.analysis.rows import ComparisonRow, GapRow, ReturnRow, ScreenRow
from gapfloor.report.figures.model import (
    SERIES,
    CurveMark,
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    described_figure,
    interval_of,
    levels_words,
    name_text,
    names_scale,
    nice_ticks,
    padded,
    rule_ink,
    rules_legend,
)
from gapfloor.report.findings import (
    MERGED,
    TEST,
    TRAIN,
    Findings,
    GameFindings,
    agent_name,
    at_budget,
    steps_text,
)
from gapfloor.report.source import ReportSource, SeedCurve
from gapfloor.tables.cells import counted, estimate, fixed, is_number, mean_sem

#: Ends of a 95% interval, in standard errors of a normal.
_NORMAL_95 = 1.96


def build_figures(source: ReportSource) -> tuple[FigureSpec, ...]:
    """Every figure that the data allow; those of the main budget have plain names and come first."""
    findings = source.findings
    made: list[FigureSpec] = []
    for budget in findings.main_first:
        is_main = budget == findings.main_budget
        end = "" if is_main else f"_{findings.slug(budget)}"
        for describe in (returns_figure, gaps_figure, entropy_figure, choices_figure):
            if figure := describe(findings, budget):
                name, title = figure.name + end, figure.title + at_budget(budget)
                made.append(replace(figure, name=name, title=title, is_open=is_main))
    for budget in dict.fromkeys(curve.budget for curve in source.curves):
        made.append(training_figure(findings, budget, source.curves))
    return tuple(made)


#: Name on the axis and level set -> the row whose mean is drawn there, and what to say about it.
Marks = Mapping[tuple[str, str], tuple[ComparisonRow | ReturnRow, str]]


def returns_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """Return against the floor under every rule, one panel per game."""
    panels = []
    for place in findings.places(budget):
        marks = {}
        for rule in findings.rules:
            for level_set in (TRAIN, TEST):
                if row := place.comparison(rule, level_set):
                    words = _return_words(row, f" over {counted(row.n, 'run')}")
                    marks[rule, level_set] = row, f"{rule}, {levels_words(level_set)}: {words}"
        floors = [floor for level_set in (TRAIN, TEST) if (floor := place.floor(level_set))]
        if marks:
            panels.append(returns_panel(place.name, floors, marks))
    return described_figure("returns", panels) if panels else None


def _return_words(row: ComparisonRow, over: str = "") -> str:
    delta = estimate(row.delta.value, row.delta.interval).plain
    return f"{mean_sem(row.mean, row.sem).plain}{over}; Δ {delta}; {row.call}"


def returns_panel(name: str, floors: Iterable[ReturnRow], marks: Marks) -> PanelSpec:
    """One game: the mean return under each rule next to the floor's."""
    shown = list(dict.fromkeys(rule for rule, _ in marks))
    shapes: list[Shape] = [
        GuideLine(
            at=floor.mean,
            across="y",
            kind="floor" if floor.level_set == TEST else "floor train",
            tip=f"random floor, {levels_words(floor.level_set)}: {mean_sem(floor.mean, floor.sem).plain}",
            band=interval_of(floor.mean, _NORMAL_95 * floor.sem) if floor.level_set == TEST else None,
        )
        for floor in floors
    ]
    shapes += [
        PointMark(
            x=shown.index(rule) + (-0.16 if level_set == TRAIN else 0.16),
            y=row.mean,
            ink=rule_ink(rule),
            tip=tip,
            is_filled=level_set == TEST,
            interval=interval_of(row.mean, row.sem),
        )
        for (rule, level_set), (row, tip) in marks.items()
    ]
    title = name_text(name)
    return PanelSpec(
        title=title,
        summary=f"{title}: return against floor",
        x=Scale(
            low=-0.5,
            high=len(shown) - 0.5,
            ticks=tuple((float(at), name_text(rule)) for at, rule in enumerate(shown)),
            has_names=True,
        ),
        y=Scale.of_shapes(shapes, "y", label="return"),
        shapes=tuple(shapes),
    )


def verdict_strip(place: GameFindings) -> PanelSpec | None:
    """A number line for one verdict: the floor, and each rule's held-out return with the interval of its call."""
    rows = [row for rule in place.findings.rules if (row := place.comparison(rule, TEST))]
    if not rows:
        return None
    floor, band = rows[0].floor, interval_of(rows[0].floor, _NORMAL_95 * rows[0].floor_sem)
    shapes: list[Shape] = [GuideLine(at=floor, across="x", kind="floor", band=band, label="floor")]
    values = [floor]
    for at, row in enumerate(rows):
        # The interval of the call, so that it excludes the floor exactly when the call does.
        low, high = row.delta.interval
        interval = (row.floor + low, row.floor + high) if is_number(low) else None
        values += [row.mean, *(interval or ())]
        tip = f"{row.rule}, held-out: {_return_words(row)}"
        shapes.append(
            PointMark(x=row.mean, y=-float(at), ink=rule_ink(row.rule), tip=tip, interval=interval, along="x")
        )
    low, high = padded(values)
    return PanelSpec(
        summary=f"{place.name}: held-out return against the floor",
        x=Scale(low=low, high=high),
        y=Scale(low=0.4 - len(rows), high=0.6, ticks=()),
        shapes=tuple(shapes),
    )


def gaps_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """Gaps with their intervals next to the floor's own gap, one row per game and rule."""
    rules = findings.two_rules
    games = [
        (place.name, rows)
        for place in findings.places(budget)
        if (rows := [gap for rule in rules if (gap := place.gap(rule))])
    ]
    if not games:
        return None
    shapes: list[Shape] = [GuideLine(at=0.0, across="x", kind="zero")]
    ticks: list[tuple[float, str]] = []
    y = 0.0
    for game, rows in games:
        ticks.append((y - (len(rows) - 1) / 2, name_text(game)))
        if is_number(rows[0].floor_gap):
            span = (y - len(rows) + 0.55, y + 0.45)
            shapes.append(GuideLine(at=rows[0].floor_gap, across="x", kind="floor gap", span=span))
        for gap in rows:
            shapes.append(_gap_mark(game, gap, y))
            y -= 1.0
        y -= 0.5
    n_rows = sum(len(rows) for _, rows in games)
    panel = PanelSpec(
        summary="Gap by game and rule, with the floor's own gap",
        x=Scale.of_shapes(shapes, "x", label="gap: train − test return"),
        y=Scale(low=y + 0.85, high=0.65, ticks=tuple(ticks), has_names=True),
        shapes=tuple(shapes),
    )
    return described_figure(
        "gaps",
        [panel],
        method=findings.plan.method,
        legend=rules_legend(rules),
        size=(380.0, 62.0 + 17.0 * n_rows + 9.0 * len(games)),
        inches=(5.2, 0.8 + 0.2 * n_rows + 0.1 * len(games)),
    )


def _gap_mark(game: str, gap: GapRow, y: float) -> PointMark:
    # What was tested; the gap itself where nothing was.
    shown = gap.estimate.value if is_number(gap.estimate.value) else gap.gap
    floor = f"; floor's own gap {fixed(gap.floor_gap, sign=True).plain}" if is_number(gap.floor_gap) else ""
    size = estimate(shown, gap.estimate.interval).plain
    return PointMark(
        x=shown,
        y=y,
        ink=rule_ink(gap.rule),
        tip=f"{game}, {gap.rule}: gap {size} over {counted(gap.n, 'run')}{floor}",
        interval=gap.estimate.interval if is_number(gap.estimate.low) else None,
        along="x",
    )


def entropy_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """Raw entropy next to merged entropy, with the screen's cuts and the maximum, one row per game."""
    rows = [(place.name, place.screen) for place in findings.places(budget) if place.screen]
    if not rows:
        return None
    maximum = max(row.maximum for _, row in rows)
    # Games with few actions cannot reach every cut.
    shapes: list[Shape] = [
        GuideLine(at=cut, across="x", kind="cut", label=f"{cut:g}")
        for cut in findings.plan.cuts
        if cut <= maximum
    ]
    shapes.append(GuideLine(at=maximum, across="x", kind="maximum", label="max"))
    for at, (game, row) in enumerate(rows):
        shapes += _entropy_marks(game, row, -float(at))
    panel = PanelSpec(
        summary="Raw and merged entropy by game",
        x=Scale(low=0.0, high=maximum * 1.03, label="entropy (nats)"),
        y=names_scale([game for game, _ in rows]),
        shapes=tuple(shapes),
    )
    return described_figure("entropy", [panel], rows=len(rows))


def _entropy_marks(game: str, row: ScreenRow, y: float) -> list[Shape]:
    raw = row.entropy_probe if is_number(row.entropy_probe) else row.entropy
    lies = f"; {row.share:.0%} of the raw entropy lies on actions with the same effect"
    marks = [
        ("raw entropy", raw, row.tier, "sampled", True, ""),
        ("merged by game", row.merged_game, row.merged_tier_game, MERGED, False, ""),
        (
            "merged by state", row.merged_state, row.merged_tier_state, MERGED, True,
            lies if is_number(row.share) else "",
        ),
    ]  # fmt: skip
    found = [mark for mark in marks if is_number(mark[1])]
    ends = [value for _, value, *_ in found]
    link = GuideLine(at=y, across="y", kind="link", span=(min(ends), max(ends)))
    shapes: list[Shape] = [link] if len(ends) > 1 else []
    for words, value, tier, ink, is_filled, more in found:
        tip = f"{game}: {words} {fixed(value, 3).plain} nats ({tier}){more}"
        shapes.append(PointMark(x=value, y=y, ink=ink, tip=tip, is_filled=is_filled))
    return shapes


def choices_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """The share of other choices under which each call stays, one row per game and quantity."""
    rows = [
        (f"{place.name} {row.quantity}", row)
        for place in findings.places(budget)
        for row in place.rows["sensitivity"]
        if row.rule in findings.two_rules and row.n_choices
    ]
    names = list(dict.fromkeys(name for name, _ in rows))
    if not any(row.flips for _, row in rows):
        return None
    shapes: list[Shape] = [GuideLine(at=1.0, across="x", kind="zero")]
    for name, row in rows:
        at = names.index(name) + (-0.16 if row.rule == findings.primary else 0.16)
        flips = "".join(f"; {flip.choice}: {flip.call}" for flip in row.flips)
        tip = f"{name}, {row.rule}: {row.call} under {row.n_stays} of {row.n_choices}{flips}"
        shapes.append(PointMark(x=row.n_stays / row.n_choices, y=-at, ink=rule_ink(row.rule), tip=tip))
    panel = PanelSpec(
        summary="Share of other choices under which each call stays",
        x=Scale(low=-0.03, high=1.03, label="share of other choices with the same call"),
        y=names_scale(names),
        shapes=tuple(shapes),
    )
    return described_figure("choices", [panel], legend=rules_legend(findings.two_rules), rows=len(names))


def training_figure(findings: Findings, budget: str, curves: Sequence[SeedCurve]) -> FigureSpec:
    """Policy entropy during training, one panel per game: the mean over seeds of each agent."""
    here = [curve for curve in curves if curve.budget == budget]
    agents = list(dict.fromkeys(curve.agent for curve in here))
    games = dict.fromkeys((curve.game, curve.mode) for curve in here)
    return described_figure(
        "entropy_training",
        [
            _training_panel(findings, [curve for curve in here if (curve.game, curve.mode) == game], agents)
            for game in games
        ],
        name=f"entropy_training{findings.slug(budget)}",
        title=f"Entropy during training{at_budget(budget)}",
        legend=[
            LegendEntry(words=name_text(agent_name(agent)), ink=SERIES[at % len(SERIES)], is_curve=True)
            for at, agent in enumerate(agents)
        ],
    )


def _training_panel(findings: Findings, curves: Sequence[SeedCurve], agents: Sequence[str]) -> PanelSpec:
    first = curves[0]
    screen = findings.place(findings.env_of(first), first.budget).screen
    shapes: list[Shape] = [GuideLine(at=cut, across="y", kind="cut") for cut in findings.plan.cuts]
    shapes += [GuideLine(at=screen.maximum, across="y", kind="maximum")] if screen else []
    for curve in curves:
        shapes.append(
            CurveMark(
                x=curve.steps,
                y=curve.mean,
                ink=SERIES[agents.index(curve.agent) % len(SERIES)],
                tip=f"{agent_name(curve.agent)} (n = {curve.n}): {curve.mean[0]:.2f} → {curve.mean[-1]:.2f} nats",
                low=curve.low,
                high=curve.high,
            )
        )
    end = max(curve.steps[-1] for curve in curves)
    name = name_text(first.game)
    return PanelSpec(
        title=name,
        subtitle=tuple(f"{name_text(agent_name(curve.agent))} n = {curve.n}" for curve in curves),
        summary=f"{name}: entropy during training",
        x=Scale(
            low=0.0,
            high=end,
            label="environment steps",
            ticks=tuple((tick, steps_text(tick)) for tick in nice_ticks(0.0, end, 4)),
        ),
        y=Scale.of_shapes(shapes, "y", label="policy entropy (nats)"),
        shapes=tuple(shapes),
    )
