"""The figure of `research-notes/training.md`: agents trained on the real engine, on held-out levels, with the floor.

    gapfloor train starpilot --steps 100000 --seed 1 --store STORE        (and the other runs)
    gapfloor evaluate STORE/runs/starpilot-easy-impala-100k-s1 --game starpilot --rules sampled,greedy --store STORE
    python benchmarks/learning_figure.py STORE --agent impala --out research-notes/figures/learning.svg

Every run of the agent and budget in the store is shown. The line is the in-loop return, a running mean over
training episodes that does not describe any checkpoint. The points are the result: held-out episodes of the
last checkpoint with 95% intervals over episodes, sampled and greedy, and the uniform floor on the same draws.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from gapfloor.records.store import Store

plt.switch_backend("agg")
plt.rcParams["svg.hashsalt"] = "gapfloor"  # equal figures are equal files

RULES = {"sampled": ("o", "full"), "greedy": ("s", "none")}


def mean_and_interval(returns: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Mean and half the width of its 95% interval over episodes."""
    return float(returns.mean()), 1.96 * float(returns.std(ddof=1)) / np.sqrt(len(returns))


def returns_of(episodes: list[dict[str, object]], **labels: object) -> npt.NDArray[np.float64]:
    rows = [row for row in episodes if all(row[name] == value for name, value in labels.items())]
    return np.array([row["episode_return"] for row in rows], dtype=np.float64)


def draw_game(
    axes: plt.Axes, game: str, logs: list[pa.Table], episodes: list[dict[str, object]], agent: str
) -> None:
    floor = returns_of(episodes, game=game, reference="uniform", level_set="test")
    floor_mean, floor_half = mean_and_interval(floor)
    axes.axhline(floor_mean, color="black", linewidth=1, label="floor, held-out")
    axes.axhspan(floor_mean - floor_half, floor_mean + floor_half, color="black", alpha=0.12, linewidth=0)
    print(f"{game:10} floor         test {floor_mean:6.2f} +- {floor_half:.2f}  ({len(floor)} episodes)")
    for number, log in enumerate(logs):
        seed, color = log["seed"][0].as_py(), f"C{number}"
        steps = log["steps"].to_numpy()
        axes.plot(
            steps / 1e3,
            log["in_loop_return"].to_numpy(),
            color=color,
            alpha=0.6,
            label=f"seed {seed}, in-loop",
        )
        for offset, (rule, (marker, fill)) in enumerate(RULES.items()):
            found = returns_of(
                episodes, game=game, agent=agent, seed=seed, rule=rule, level_set="test", reference=""
            )
            if not len(found):
                continue
            mean, half = mean_and_interval(found)
            at = steps[-1] / 1e3 * (1.05 + 0.04 * (2 * number + offset))
            axes.errorbar(
                at, mean, half, color=color, marker=marker, fillstyle=fill, capsize=3, linestyle="none",
                label=f"seed {seed}, held-out {rule}",
            )  # fmt: skip
            print(f"{game:10} s{seed} {rule:8}  test {mean:6.2f} +- {half:.2f}  ({len(found)} episodes)")
    axes.set(title=game, xlabel="environment steps (thousands)", ylabel="return")
    axes.legend(fontsize=6, frameon=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("--agent", default="impala")
    parser.add_argument("--budget", default="100k")
    parser.add_argument("--games", default="starpilot,fruitbot")
    parser.add_argument("--seeds", default="1,2", help="all of these are shown")
    parser.add_argument("--out", type=Path, default=Path("research-notes/figures/learning.svg"))
    arguments = parser.parse_args()
    games, seeds = arguments.games.split(","), arguments.seeds.split(",")
    episodes = Store(arguments.store).episodes().to_pylist()
    figure, panels = plt.subplots(
        1, len(games), figsize=(4.5 * len(games), 3.4), squeeze=False, layout="constrained"
    )
    for axes, game in zip(panels[0], games, strict=True):
        runs = [f"{game}-easy-{arguments.agent}-{arguments.budget}-s{seed}" for seed in seeds]
        logs = [pq.read_table(arguments.store / "runs" / run / "log.parquet") for run in runs]
        draw_game(axes, game, logs, episodes, arguments.agent)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.out, metadata={"Date": None} if arguments.out.suffix == ".svg" else {})
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
