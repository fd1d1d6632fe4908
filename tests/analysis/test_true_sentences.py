"""What `gapfloor analyse` and the verdict of its report say about small files whose truth is known.

Each case is a file, what must be said about it, and (after `NEVER`) what would be false.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from command_line import run
from gapfloor.errors import GapfloorError
from gapfloor.report.source import load_report_source
from gapfloor.report.verdict import build_verdicts
from known_truth import game_rows, repeated, table

pytestmark = pytest.mark.fast

Rows = list[dict[str, Any]]
NEVER = "never:"


def cell(returns: Any, **labels: Any) -> Rows:
    """One cell of held-out episodes."""
    base = {"game": "coinrun", "mode": "easy", "agent": None, "seed": None, "budget": "", "reference": "",
            "rule": "sampled", "draw": 0, "level_set": "test", **labels}  # fmt: skip
    return [
        {**base, "level_seed": 1000 + i, "episode_return": float(value)} for i, value in enumerate(returns)
    ]


def held_out(runs: Any, floor: Any, **labels: Any) -> Rows:
    """Runs and a floor on held-out levels, with exactly these returns."""
    rows = [
        row
        for seed, returns in enumerate(runs)
        for row in cell(returns, **{"agent": "a", "seed": seed, **labels})
    ]
    return rows + cell(floor, reference="uniform", rule="uniform")


def wins(*counts: int, of: int = 384) -> list[Any]:
    """Returns of 0 or 1 with so many successes, in an order of their own."""
    rng = np.random.default_rng(sum(counts))
    return [rng.permutation([1.0] * n + [0.0] * (of - n)) for n in counts]


def around(mean: float, *runs: float, sd: float = 1.0, n: int = 200) -> list[Any]:
    """Normal returns; runs by their distance from the mean."""
    rng = np.random.default_rng(0)
    return [mean + run + sd * (e - e.mean()) for run in runs for e in [rng.standard_normal(n)]]


def changed(rows: Rows, change: Any, **where: Any) -> Rows:
    """The rows with other returns, where the labels are these."""
    return [
        {**row, "episode_return": change(row["episode_return"])}
        if all(row[key] == value for key, value in where.items())
        else row
        for row in rows
    ]


def without(rows: Rows, **where: Any) -> Rows:
    """The rows less those with these labels."""
    return [row for row in rows if any(row[key] != value for key, value in where.items())]


SPREAD = (-0.3, -0.2, -0.05, 0.05, 0.2, 0.3)
TRAIN, HALF = range(60), range(50, 110)
TEN = {"train": range(10), "test": range(1000, 1010)}
ELSEWHERE = {"train": range(5000, 5060), "test": range(6000, 6060)}
FEW_LEVELS = changed(
    game_rows(test=3.0, train=3.0, level_sd=3.0, noise_sd=0.5, run_sd=0.1, levels=TEN, n_runs=8, repeats=10, seed=3),
    lambda value: 2.0 + 0.1 * (value > 3), rule="uniform",
)  # fmt: skip
NEAR_COPIES = changed(
    repeated(repeated(game_rows(n_runs=1), seed=0, under=7), seed=0, under=8),
    lambda value: value * (1 + 1e-12) + (value > 8), seed=7,
)  # fmt: skip
CURVE = [
    {**row, "global_step": step, "episode_return": row["episode_return"] * step / 3}
    for step in (1, 2, 3)
    for row in game_rows()
]
GREEDY = [{**r, "rule": "greedy", "episode_return": r["episode_return"] - 4}
          for r in game_rows() if r["rule"] == "sampled"]  # fmt: skip
LEFT_SKEWED = (0.3, 0.25, 0.2, 0.15, 0.1, -4.0)
RIGHT_SKEWED = (-0.2, -0.1, 0.0, 0.0, 0.1, 0.2)

#: By name: the rows, what is said about them, and after the marker what is not.
CASES: dict[str, tuple[Any, ...]] = {
    # Rare successes and silent floors
    "rare successes, equal": (
        held_out(wins(2, 3, 1, 4, 2, 3), wins(1)[0]), NEVER, ": above chance", "worse than"),
    "rare successes, real": (
        held_out(wins(8, 12, 10, 14, 9, 11), wins(0)[0]), "against a random floor of 0.00: above chance"),
    "five floor episodes": (
        held_out(wins(120, 110, 115, 125, 105, 118), wins(0, of=5)[0]),
        "not tested against random play (the floor has 5 episodes, and 50 are needed)", NEVER,
        "above chance"),
    "a silent floor of eight": (
        held_out(wins(8, 12, 10, 14, 9, 11), [0.0] * 8),
        "nothing about the agent yet: not tested (the floor has 8 episodes, and 50 are needed)", NEVER,
        "[0.0"),
    "nobody ever scores": (
        held_out([[0.0] * 384] * 6, [0.0] * 384),
        "not tested against random play (no return differs from another)"),
    "every run 1, the floor 0": (held_out([[1.0] * 384] * 6, [0.0] * 384), "above chance"),
    # Rounding errors
    "every return .1": (
        held_out([[0.1] * 384] * 6, [0.1] * 100), "not tested (no return differs from another)",
        NEVER, "above", "worse"),
    "every return 1/3": (
        held_out([[1 / 3] * 300] * 6, [1 / 3] * 384), "not tested (no return differs from another)",
        NEVER, "worse", "-0.00"),
    "two agents that always score .1": (
        [*held_out([[0.1] * 384] * 6, [0.1] * 100),
         *held_out([[0.1] * 100] * 6, [], agent="b")], "not tested", NEVER, "Agents differ"),
    # Agents
    "a bad and a good agent": (
        held_out(around(0.94, *SPREAD), around(1.81, 0)[0]) + held_out(around(4.92, *SPREAD), [], agent="b"),
        "The coinrun (a) runs are not tested", "The coinrun (b) runs are above", "a scores 3.98 less than b",
        NEVER, "2.93", "six runs score 2"),
    "equal agents": (game_rows(agents=("a", "b")), NEVER, "Agents differ"),
    "an agent of three runs in two groups": (
        held_out(around(5.0, 0.0, 0.02, 0.05), around(1.8, 0)[0])
        + held_out(around(5.0, -2, 2, -2.1, 2.2, -1.9, 2, -2, 1.8, 2, -1.8, 2, 1.9), [], agent="b"),
        NEVER, "Agents differ"),
    # Shapes of runs
    "80% of runs at 0": (
        held_out([[0.0] * 100] * 5 + [[5.0] * 100], around(1.0, 0)[0]),
        "not distinguishable from random play",
        NEVER, "worse", "below"),
    "80% of runs near 0": (
        held_out(around(0.0, 0, 0.01, 0.02, 0.03, 0.04, sd=0.1), around(1.0, 0)[0]),
        "not tested against random play (the runs may be right-skewed)", NEVER, "worse", "below chance"),
    "six runs clearly below, of unclear shape": (
        game_rows(train=0.5, test=0.5, run_values=RIGHT_SKEWED),
        "not tested (the runs may be right-skewed)", NEVER, "worse"),
    "ten runs clearly below": (
        game_rows(train=0.5, test=0.5, n_runs=10, seed=1), "worse than random play",
        "held-out return is below chance"),
    "five equal runs and a failed one": (
        game_rows(run_values=LEFT_SKEWED), "not tested (the runs may be left-skewed)", NEVER,
        ": above chance"),
    "three runs in two groups": (
        held_out(around(5.0, 0, 0.01, 3.0, sd=0.1), around(2.0, 0)[0]), NEVER, ": above chance", "worse"),
    # Numbers of runs
    "one run": (game_rows(n_runs=1), "the run scores 6.20", "(1 run)", "train more seeds", NEVER,
        "above chance", "± 0.00"),
    "two runs": (game_rows(n_runs=2), "nothing about the agent yet: not tested (2 runs)", NEVER,
        "above chance"),
    "copies": (
        repeated(repeated(game_rows(n_runs=2), seed=0, under=7), seed=0, under=8),
        "not tested (2 runs, 2 copies left out)", "every episode equals one of", NEVER, "above chance"),
    "near-copies": (
        NEAR_COPIES, "not tested (1 run, 2 copies left out)", "almost every episode equals one of", NEVER,
        "above chance"),
    # Level sets
    "held-out levels are the training levels": (
        game_rows(levels={"train": TRAIN, "test": TRAIN}), "60 of them were also played as training levels",
        "does not support any statement about held-out levels", NEVER, "transfers:",
        "new levels of the generator"),
    "ten levels in common": (
        game_rows(levels={"train": TRAIN, "test": HALF}), "10 of them were also played", NEVER,
        "that the policy transfers:"),
    "ten levels with large effects": (
        FEW_LEVELS, "above chance on these 10 held-out levels",
        "does not support that the policy transfers to new levels",
        NEVER, "supports that the policy transfers"),
    "one level per set": (
        [{**row, "level_seed": int(row["level_set"] == "test")} for row in game_rows()],
        "on this one held-out level", "not tested (fewer than two common levels)", NEVER,
        "supports that the policy transfers"),
    "the floor on other levels": (
        game_rows(train=8.0, floor_levels=ELSEWHERE), "they have no level in common",
        "was not tested (fewer than two common levels)", NEVER, "what new levels cost", "partly"),
    "no level seeds": (
        game_rows(train=8.0, has_levels=False), "the gap of +2.08 was not tested (no level seeds)",
        NEVER, "not established", "inside the interval"),
    "one missing level seed": (
        [{**row, "level_seed": None} if at == 3 else row for at, row in enumerate(game_rows(train=8.0))],
        "level_seed is missing in line 5", "gaps are not tested", NEVER, "what new levels cost"),
    # Gaps
    "a gap": (game_rows(train=8.0), "reading the gap of +2.08",
        "as what new levels cost: both returns are above"),
    "the floor has the same gap": (
        game_rows(train=8.0, floor_train=4.0), "Random play itself scores 2.09 more on the training levels",
        NEVER, "what new levels cost"),
    "difficulty multiplies": (
        game_rows(train=20.0, test=10.0, floor_train=4.0),
        "as what new levels cost, if difficulty adds the same to every policy", NEVER, "cost:"),
    "held-out levels are easier": (
        game_rows(test=8.0), "held-out levels gave more than training levels, with a gap of −1.92",
        "the held-out levels may simply be easier"),
    "only the training levels were learnt": (
        game_rows(test=2.0, noise_sd=2.0), "something was learnt about the training levels",
        "does not support that any of it transfers", NEVER, "supports that the policy transfers"),
    "nothing was learnt": (
        game_rows(train=2.0, test=2.0), "not distinguishable from random play", NEVER, "above chance",
        "learnt"),
    # Scales
    "equal on returns from 0 to 1": (
        held_out(around(0.5, *(0.01 * x for x in SPREAD), sd=0.05), around(0.5, 0, sd=0.05)[0]),
        "equivalent to random play"),
    "a tenth better on returns from 0 to 1": (
        held_out(wins(52, 68, 55, 66, 50, 69, of=100), wins(192)[0]), "not distinguishable", NEVER,
        "equivalent to random play"),
    "percent": (
        changed(held_out(wins(52, 68, 55, 66, 50, 69, of=100), wins(142)[0]), lambda value: 100 * value),
        "score 60.00 on held-out levels", "above chance"),
    "negative returns": (changed(game_rows(), lambda value: 10 * value - 200), "score −140.40",
        "above chance"),
    "whole numbers above 2^53": (
        changed(game_rows(), lambda value: 2**53 + 2 * int(value)), "returns above 2^53 are 64-bit numbers",
        "no return differs from another", NEVER, "above chance", "[11"),
    "single precision near 1e7": (
        changed(game_rows(), lambda value: float(np.float32(1e7 + value))), "above chance", NEVER, "nan"),
    "1e200": (changed(game_rows(), lambda value: 1e200 * value), "above 1e+50 in line", "Divide all returns"),
    "1e-180": (changed(game_rows(), lambda value: 1e-180 * value), "too small to compute with",
        "Multiply all returns"),
    "not a number": (
        changed(game_rows(), lambda value: float("nan") if value > 9 else value),
        "missing or not finite in line"),
    # What is missing, and what is more
    "no floor": (without(game_rows(), rule="uniform"), "so nothing can be said about chance", NEVER,
        "transfers"),
    "no floor on held-out levels": (
        without(game_rows(), rule="uniform", level_set="test"),
        "There is no random floor on the held-out levels",
        NEVER, "transfers"),
    "no training levels": (
        without(game_rows(), level_set="train"), "supports that the held-out return is above chance",
        "training levels were not played", NEVER, "transfers"),
    "two rules": (
        game_rows() + GREEDY,
        "with greedy actions the same weights score 1.96, not distinguishable from random play"),
    "a learning curve": (CURVE, "it is a learning curve", "--step last"),
}  # fmt: skip


def said_about(rows: Rows, capsys: pytest.CaptureFixture[str], path: Any) -> str:
    """All that `gapfloor analyse` prints about a file, and the verdicts of its report."""
    pyarrow.csv.write_csv(table(rows), path)
    done = run(capsys, "analyse", path)
    said = [done.out, done.err]
    try:
        verdicts = build_verdicts(load_report_source(path).findings)
    except GapfloorError:
        assert done.code == 2
        verdicts = ()
    for verdict in verdicts:
        said += [
            verdict.sentence,
            f"It supports {verdict.supports}",
            f"It does not support {verdict.does_not}",
        ]
        said += verdict.remarks
    return "\n".join(said)


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_is_true(case, capsys, tmp_path):
    rows, *words = CASES[case]
    at = words.index(NEVER) if NEVER in words else len(words)
    said = said_about(rows, capsys, tmp_path / "episodes.csv")
    assert [text for text in words[:at] if text not in said] == [], said
    assert [text for text in words[at + 1 :] if text in said] == [], said


def test_what_is_said_does_not_depend_on_the_order_of_rows(capsys, tmp_path):
    rows = game_rows(train=8.0)
    mixed = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    path = tmp_path / "episodes.csv"
    assert said_about(mixed, capsys, path) == said_about(rows, capsys, path)


def test_the_last_step_of_a_learning_curve_is_read_if_asked_for(capsys, tmp_path):
    pyarrow.csv.write_csv(table(CURVE), tmp_path / "curve.csv")
    done = run(capsys, "analyse", tmp_path / "curve.csv", "--step", "last")
    assert (
        "the six runs score 5.96 on held-out levels against a random floor of 1.91: above chance" in done.out
    )
