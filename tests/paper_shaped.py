"""A data set with the shape and the printed numbers of the paper's study, for tests, benchmarks and the report.

84 runs (48 at 8M, 36 at 25M) x 2 rules x 2 level sets x 3 draws x 128 episodes are 1,008 cells; 288 cells of
merged argmax and 48 of the floor are added, 172,032 episodes in total. Run values reproduce the printed
means and SEMs of train, test and gap per agent and pooled, the number of runs above the floor, and nearly the
printed intervals of the gaps; floors reproduce their printed mean and SEM with whole-number returns. Episodes
around a run value are invented: level effects and noise of a size that gives the printed Stouffer Z.

Nothing here is a measurement. Use `load()`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import optimize

PAPER: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "paper_tables.json").read_text())
#: The fitted run values, which take a minute to find.
VALUES = Path(__file__).parent / "data" / "paper_shaped_values.json"
AGENTS = ("IMPALA", "FPN")
GAMES = ("starpilot", "fruitbot", "bigfish", "coinrun", "miner", "dodgeball", "bossfight", "heist")
EXTENDED = ("starpilot", "fruitbot", "heist")
DRAWS = (0, 1, 2)
EPISODES = 128
SLOTS = 16
LEVELS = {"train": np.arange(0, 200), "test": np.arange(1000, 1100)}
#: Mean ln(classes) over states, which the paper does not print: values that give its per-state tiers.
LN_K_STATE = {
    "starpilot": 2.2,
    "fruitbot": 1.25,
    "bigfish": 2.1,
    "coinrun": 1.225,
    "miner": 1.3,
    "dodgeball": 2.3,
    "bossfight": 2.0,
    "heist": 2.13,
}
_CONDITIONS = [(game, "8M") for game in GAMES] + [(game, "25M") for game in EXTENDED]
#: Games that pay WIN or nothing.
TWO_VALUED = ("coinrun", "heist")
WIN = 10.0
#: How far a value may lie from its printed, rounded number.
_SLACK = 0.0042


@dataclass(frozen=True)
class PaperShaped:
    """The episodes and the cell records, in the columns of the store."""

    episodes: pa.Table
    cells: pa.Table


@cache
def load() -> PaperShaped:
    """The data set; the same bytes every time."""
    values = run_values()
    return PaperShaped(_episodes(values), _cell_records())


def printed(game: str, budget: str, rule: str) -> dict[str, Any]:
    """What the paper prints of one condition: rows per agent and pooled ones."""
    table = PAPER["agents_8m"] if budget == "8M" else PAPER["agents_25m"]
    agents = [row for name in AGENTS for row in table if row["env"] == game and row["encoder"] == name]
    pooled = {
        row["levels"]: row[rule]["ret"]
        for row in PAPER["floor_calls"]
        if row["env"] == game and row["budget"] == budget
    }
    gaps = PAPER["gaps_8m"] if budget == "8M" else [r for r in PAPER["gaps_extended"] if r["budget"] == "25M"]
    gap = next(row[rule]["gap"] for row in gaps if row["env"] == game)
    pooled["gap"] = {"mean": gap["est"]}
    if game == "heist":
        row = next(r for r in PAPER["heist_rules"] if r["budget"] == budget and r["rule"] == rule)
        pooled["gap"]["sem"] = row["gap"]["sem"]
    return {
        "n": [row["n"] for row in agents],
        "agents": [row[rule] for row in agents],
        "pooled": pooled,
        "gap_ci": (gap["lo"], gap["hi"]),
        "floor": {
            levels: next(
                r["floor"]
                for r in PAPER["floor_calls"]
                if r["env"] == game and r["budget"] == budget and r["levels"] == levels
            )
            for levels in ("train", "test")
        },
    }


@cache
def run_values() -> dict[tuple[str, str, str, str], np.ndarray]:
    """(game, budget, rule, level set) -> one value per run, agents after one another."""
    stored = json.loads(VALUES.read_text())
    return {tuple(key.split()): np.array(values) for key, values in stored.items()}  # type: ignore[misc]


def fit_run_values() -> dict[tuple[str, str, str, str], np.ndarray]:
    """Run values fitted to everything printed; `python tests/paper_shaped.py` stores them."""
    values: dict[tuple[str, str, str, str], np.ndarray] = {}
    for game, budget in _CONDITIONS:
        for rule in ("sampled", "greedy"):
            train, test = _fit_condition(game, budget, rule, values.get((game, budget, "sampled", "test")))
            values[game, budget, rule, "train"], values[game, budget, rule, "test"] = train, test
    for row in PAPER["merged_argmax"]:
        game = row["env"]
        greedy = values[game, "8M", "greedy", "test"]
        values[game, "8M", "merged", "test"] = _merged(row, greedy)
        # The paper prints no merged return on training levels: give it the greedy gap.
        shift = np.maximum(values[game, "8M", "greedy", "train"] - greedy, 0)
        values[game, "8M", "merged", "train"] = values[game, "8M", "merged", "test"] + shift
    return values


def _fit_condition(
    game: str, budget: str, rule: str, sampled_test: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    facts = printed(game, budget, rule)
    moments = _fit_moments(facts)
    rng = np.random.default_rng([len(game), ord(game[0]), ord(game[1]), int(budget[:-1]), len(rule)])
    wanted = _runs_above(game, budget, rule)
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for _ in range(200):
        train, test = _realise(moments, facts["n"], rng)
        cost = _interval_cost(train - test, facts["gap_ci"], rng)
        if wanted is not None:
            cost += 10 * abs(np.count_nonzero(test > facts["floor"]["test"]["mean"]) - wanted)
        if rule == "greedy" and sampled_test is not None:
            cost += _rule_cost(game, budget, sampled_test, test)
        if best is None or cost < best[0]:
            best = (cost, train, test)
    assert best is not None
    _, train, test = best
    if game in TWO_VALUED:
        return _as_wins(facts, train, test, wanted, rng)
    return train, test


def _as_wins(
    facts: dict[str, Any], train: np.ndarray, test: np.ndarray, wanted: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Run values that are whole numbers of wins and still round to everything printed."""
    unit = WIN / (len(DRAWS) * EPISODES)
    wins = np.rint(np.array([train, test]) / unit)

    def cost(candidate: np.ndarray) -> float:
        values = np.maximum(candidate, 0) * unit
        starts = np.r_[0, np.cumsum(facts["n"])]
        moments = []
        for low, high in pairwise(starts):
            a, b = values[0, low:high], values[1, low:high]
            moments.append([a.mean(), b.mean(), _sem(a), _sem(b), _correlation(a, b)])
        misfit = sum(max(abs(x - y) - 0.0049, 0) for x, y in _predicted(np.array(moments), facts))
        above = np.count_nonzero(values[1] > facts["floor"]["test"]["mean"])
        return misfit + (abs(above - wanted) if wanted is not None else 0)

    # Annealing: single wins move freely at first, then only where they help.
    now = cost(wins)
    for step in range(40_000):
        if now == 0:
            break
        candidate = wins.copy()
        for _ in range(rng.integers(1, 4)):
            candidate[rng.integers(2), rng.integers(wins.shape[1])] += rng.choice((-1, 1))
        new = cost(candidate)
        if candidate.min() >= 0 and rng.random() < math.exp(min(0, (now - new) / (0.02 * 0.9998**step))):
            wins, now = candidate, new
    return wins[0] * unit, wins[1] * unit


def _sem(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size))


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    product = a.std() * b.std()
    return float(((a - a.mean()) * (b - b.mean())).mean() / product) if product else 0.0


def _runs_above(game: str, budget: str, rule: str) -> int | None:
    if budget != "8M":
        return None
    return next(int(row[rule]["k"]) for row in PAPER["unmask"] if row["env"] == game)


def _rule_cost(game: str, budget: str, sampled: np.ndarray, greedy: np.ndarray) -> float:
    """What the text says about which rule is higher, and in how many runs."""
    higher = np.count_nonzero(greedy > sampled)
    if budget != "8M" or game not in ("fruitbot", "heist", "bossfight"):
        return 0.0
    wanted = {"fruitbot": 6, "heist": 0, "bossfight": 5}[game]
    return 10.0 * abs(higher - wanted)


def _interval_cost(gaps: np.ndarray, ci: tuple[float, float], rng: np.random.Generator) -> float:
    means = np.sort(gaps)[rng.integers(0, gaps.size, (1000, gaps.size))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return abs(low - ci[0]) + abs(high - ci[1])


def _fit_moments(facts: dict[str, Any]) -> np.ndarray:
    """Means, SEMs and correlations of train and test per agent that round to everything printed.

    The five numbers of an agent are: mean of train, mean of test, SEM of train, SEM of test, correlation.
    """
    start = []
    for agent in facts["agents"]:
        test, gap = agent["test"], agent["gap"]
        train = agent.get("train") or {
            "mean": test["mean"] + gap["mean"],
            "sem": math.hypot(test["sem"], gap["sem"]),
        }
        product = 2 * train["sem"] * test["sem"]
        rho = (train["sem"] ** 2 + test["sem"] ** 2 - gap["sem"] ** 2) / product
        start += [train["mean"], test["mean"], train["sem"], test["sem"], float(np.clip(rho, -0.98, 0.98))]

    def misfit(x: np.ndarray) -> np.ndarray:
        errors = [got - want for got, want in _predicted(x.reshape(-1, 5), facts)]
        distance = np.abs(errors)
        bounds = np.concatenate([np.maximum(-x.reshape(-1, 5)[:, 2:4].ravel(), 0)])
        return np.concatenate([np.maximum(distance - _SLACK, 0) + 1e-4 * distance, bounds])

    low = np.tile([-np.inf, -np.inf, 1e-3, 1e-3, -0.999], len(facts["n"]))
    high = np.tile([np.inf, np.inf, np.inf, np.inf, 0.999], len(facts["n"]))
    fitted = optimize.least_squares(misfit, np.array(start), bounds=(low, high), xtol=1e-14, ftol=1e-14)
    return fitted.x.reshape(-1, 5)


def _predicted(moments: np.ndarray, facts: dict[str, Any]) -> list[tuple[float, float]]:
    """(value, printed value) of everything printed about a condition."""
    n = np.array(facts["n"])
    parts: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "train": (moments[:, 0], moments[:, 2]),
        "test": (moments[:, 1], moments[:, 3]),
    }
    cross = 2 * moments[:, 4] * moments[:, 2] * moments[:, 3]
    square = np.maximum(moments[:, 2] ** 2 + moments[:, 3] ** 2 - cross, 1e-12)
    parts["gap"] = (moments[:, 0] - moments[:, 1], np.sqrt(square))
    pairs: list[tuple[float, float]] = []
    for part, (means, sems) in parts.items():
        for i, agent in enumerate(facts["agents"]):
            if part in agent:
                pairs += [(means[i], agent[part]["mean"]), (sems[i], agent[part]["sem"])]
        pooled = facts["pooled"][part]
        mean = float(np.average(means, weights=n))
        pairs.append((mean, pooled["mean"]))
        if "sem" in pooled:
            total = np.sum((n - 1) * n * sems**2) + np.sum(n * (means - mean) ** 2)
            pairs.append((math.sqrt(total / (n.sum() - 1) / n.sum()), pooled["sem"]))
    return pairs


def _realise(moments: np.ndarray, n: list[int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Run values with exactly these moments, in a random direction."""
    trains, tests = [], []
    for (train, test, train_sem, test_sem, rho), runs in zip(moments, n, strict=True):
        axes = rng.standard_normal((runs, 2))
        axes -= axes.mean(axis=0)
        first, second = np.linalg.qr(axes)[0].T
        # A unit vector times SEM * sqrt(n (n - 1)) has that SEM.
        scale = math.sqrt(runs * (runs - 1))
        tests.append(test + test_sem * scale * first)
        trains.append(train + train_sem * scale * (rho * first + math.sqrt(1 - rho**2) * second))
    return np.concatenate(trains), np.concatenate(tests)


def _merged(row: dict[str, Any], greedy: np.ndarray) -> np.ndarray:
    """Merged-argmax values: the printed mean and SEM, following the greedy values' order."""
    noise = np.random.default_rng(len(row["env"])).standard_normal(greedy.size)
    residual = (greedy - greedy.mean()) / max(greedy.std(), 1e-9) + 0.35 * noise
    residual -= residual.mean()
    scale = row["merged"]["sem"] * math.sqrt(greedy.size * (greedy.size - 1)) / np.linalg.norm(residual)
    # The printed difference to greedy is rounded from unrounded means: meet both where that is possible.
    mean = np.clip(
        greedy.mean() + row["merged_minus_greedy"],
        row["merged"]["mean"] - _SLACK,
        row["merged"]["mean"] + _SLACK,
    )
    values = mean + scale * residual
    if row["env"] not in TWO_VALUED:
        return values
    return _merged_wins(row, values)


def _merged_wins(row: dict[str, Any], values: np.ndarray) -> np.ndarray:
    unit = WIN / (len(DRAWS) * EPISODES)
    rng = np.random.default_rng(3)

    def cost(wins: np.ndarray) -> float:
        x = wins * unit
        return abs(x.mean() - row["merged"]["mean"]) + abs(_sem(x) - row["merged"]["sem"])

    best = np.maximum(np.rint(values / unit), 0)
    for _ in range(5000):
        candidate = best.copy()
        for _ in range(rng.integers(1, 4)):
            candidate[rng.integers(best.size)] += rng.choice((-1, 1))
        if candidate.min() >= 0 and cost(candidate) < cost(best):
            best = candidate
    return best * unit


def floor_returns(game: str, levels: str) -> np.ndarray:
    """384 whole-number returns with the printed mean and SEM of a floor."""
    facts = printed(game, "8M", "sampled")["floor"][levels]
    n = len(DRAWS) * EPISODES
    rng = np.random.default_rng([len(game), ord(game[0]), len(levels)])
    total = round(facts["mean"] * n)
    if game in TWO_VALUED:
        wins = round(facts["mean"] * n / WIN)
        return rng.permutation(np.r_[np.full(wins, WIN), np.zeros(n - wins)])
    squares = facts["sem"] ** 2 * n * (n - 1) + total**2 / n
    least = -15 if game == "fruitbot" else 0
    values = np.full(n, total // n)
    values[: total - values.sum()] += 1
    # Move one point from a random episode to another until the sum of squares is right.
    points, square = values.tolist(), int((values**2).sum())
    for give, take in rng.integers(0, n, (200_000, 2)).tolist():
        if square >= squares:
            break
        gain = 2 * (points[take] - points[give]) + 2
        if points[give] > least and gain >= 0 and points[take] < 40:
            points[give] -= 1
            points[take] += 1
            square += gain
    values = np.array(points)
    return rng.permutation(values).astype(float)


def schedule(levels: str, draw: int) -> np.ndarray:
    """The level seeds of a draw, the same for every policy."""
    return np.random.default_rng([7, len(levels), draw]).choice(LEVELS[levels], EPISODES)


def episode_sd(game: str, budget: str) -> float:
    """The sd of a run's episode returns that gives the printed Stouffer Z of the sampled gap."""
    table = (
        PAPER["gaps_8m"] if budget == "8M" else [r for r in PAPER["gaps_extended"] if r["budget"] == "25M"]
    )
    row = next(r for r in table if r["env"] == game)
    gap, z = row["sampled"]["gap"]["est"], row["sampled"]["stouffer_z"]
    return abs(gap * math.sqrt(row["n"]) / z) * math.sqrt(len(DRAWS) * EPISODES / 2)


def _episodes(values: dict[tuple[str, str, str, str], np.ndarray]) -> pa.Table:
    blocks: list[dict[str, Any]] = []
    for game in GAMES:
        for levels in LEVELS:
            returns = _floor_by_level(game, levels)
            blocks.append(_block(game, "", "", "", "uniform", levels, returns, reference="uniform"))
    for (game, budget, rule, levels), runs in values.items():
        sd = episode_sd(game, budget)
        seeds = _seeds(runs.size)
        for i, value in enumerate(runs):
            returns = _run_episodes(value, sd, game, levels, key=(len(budget), len(rule), i, len(game)))
            agent = AGENTS[i // (runs.size // 2)]
            blocks.append(_block(game, budget, agent, str(seeds[i]), rule, levels, returns, reference=""))
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    seeds = [int(seed) if seed else None for seed in table["seed"].to_pylist()]
    return table.set_column(table.column_names.index("seed"), "seed", pa.array(seeds, pa.int64()))


def _seeds(n: int) -> list[int]:
    return [i % (n // 2) + 1 for i in range(n)]


def _levels_of(levels: str) -> np.ndarray:
    return np.concatenate([schedule(levels, draw) for draw in DRAWS])


def _floor_by_level(game: str, levels: str) -> np.ndarray:
    """The floor's returns, arranged so that a level's episodes resemble each other a little."""
    rng = np.random.default_rng([11, len(game), len(levels)])
    played = _levels_of(levels)
    ease = rng.standard_normal(2000)[played] + 1.5 * rng.standard_normal(played.size)
    arranged = np.empty(played.size)
    arranged[np.argsort(ease)] = np.sort(floor_returns(game, levels))
    return arranged


def _run_episodes(value: float, sd: float, game: str, levels: str, *, key: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng([13, *key, ord(levels[1]), ord(game[0])])
    played = _levels_of(levels)
    level_effect = np.random.default_rng([17, len(game), ord(game[0])]).standard_normal(2000)[played]
    noise = 0.5 * level_effect + rng.standard_normal(played.size)
    if game in TWO_VALUED:
        wins = round(value / WIN * played.size)
        returns = np.zeros(played.size)
        returns[np.argsort(-noise)[:wins]] = WIN
        return returns
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    return value + sd * noise


def _block(
    game: str,
    budget: str,
    agent: str,
    seed: str,
    rule: str,
    levels: str,
    returns: np.ndarray,
    *,
    reference: str,
) -> dict[str, Any]:
    n = returns.size
    position = np.arange(n) % EPISODES
    text = {
        "game": game,
        "mode": "easy",
        "budget": budget,
        "agent": agent,
        "seed": seed,
        "reference": reference,
        "rule": rule,
        "level_set": levels,
    }
    return {
        **{name: np.full(n, value, dtype=object) for name, value in text.items()},
        "draw": np.repeat(DRAWS, EPISODES),
        "slot": position % SLOTS,
        "index": position // SLOTS,
        "level_seed": _levels_of(levels),
        "episode_return": returns,
        "length": np.full(n, 100),
    }


def _cell_records() -> pa.Table:
    rows: list[dict[str, Any]] = []
    for game, budget in _CONDITIONS:
        facts = next(r for r in PAPER["merged_entropy"] if r["env"] == game and r["budget"] == budget)
        raw = facts["raw_H"]
        if budget == "8M":
            raw = next(r["H"] for r in PAPER["tiers"] if r["env"] == game)
        n = sum(printed(game, budget, "sampled")["n"])
        for rule in ("sampled", "greedy", "merged"):
            if rule == "merged" and budget != "8M":
                continue
            disagree = next(r["disagree_pct"] / 100 for r in PAPER["merged_argmax"] if r["env"] == game)
            for i in range(n):
                for levels in LEVELS:
                    for draw in DRAWS:
                        # Deviations that cancel over runs, level sets and draws.
                        wobble = 0.002 * (i - (n - 1) / 2) + 0.001 * (draw - 1)
                        wobble += 0.003 if levels == "train" else -0.003
                        rows.append(
                            {
                                "game": game,
                                "mode": "easy",
                                "budget": budget,
                                "agent": AGENTS[i // (n // 2)],
                                "seed": _seeds(n)[i],
                                "reference": "",
                                "rule": rule,
                                "level_set": levels,
                                "draw": draw,
                                "n_steps": 12_800,
                                "entropy_raw": (raw if rule == "sampled" else facts["greedy_states_H"])
                                + wobble,
                                "entropy_first1024": facts["first1024_H"] + wobble,
                                "entropy_probe": facts["raw_H"] + wobble,
                                "merged_state": facts["merged_H_state"] + wobble,
                                "merged_game": facts["merged_H_game"] + wobble,
                                "mean_ln_k": LN_K_STATE[game],
                                "disagreement": disagree if rule == "merged" else 0.0,
                                "action_counts": [1000] * 15,
                                "k": facts["k_global"],
                                "device": "cpu",
                                "backend": "numpy",
                            }
                        )
    return pa.Table.from_pylist(rows)


def _store_fit() -> None:
    rows = [
        f" {json.dumps(' '.join(key))}: {json.dumps([round(float(x), 9) for x in values])}"
        for key, values in fit_run_values().items()
    ]
    VALUES.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    _store_fit()
