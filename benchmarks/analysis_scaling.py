"""How `gapfloor analyse` grows with episodes, agents, cells of a store and megabytes of CSV; a report of a large study.

    python benchmarks/analysis_scaling.py [episodes] [agents] [store] [report] [csv] [--repeats 2]

Every measurement is a new process, from the command line to the written results; start-up counts. Prints one Markdown
table per topic: CPU and wall seconds (medians), peak memory, and the exponent of CPU seconds fitted on a
logarithmic scale. The data are invented: sixteen games, whole-number returns.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from page_tables import write_between

GAMES = (
    "bigfish", "bossfight", "caveflyer", "chaser", "climber", "coinrun", "dodgeball", "fruitbot", "heist", "jumper",
    "leaper", "maze", "miner", "ninja", "plunder", "starpilot",
)  # fmt: skip
STORE_LABELS = ("game", "budget", "agent", "seed", "reference", "rule", "level_set", "draw")
COUNTED = ("slot", "index", "level_seed", "episode_return", "length")
LEVELS = {"train": (0, 200), "test": (1000, 1100)}


@dataclass(frozen=True)
class Shape:
    """How large an invented study is."""

    games: int = 16
    agents: int = 2
    seeds: int = 3
    budgets: int = 1
    rules: tuple[str, ...] = ("sampled", "greedy")
    draws: int = 3
    episodes: int = 128

    @property
    def cells(self) -> int:
        """Cells of runs and of floors."""
        runs = self.games * self.budgets * self.agents * self.seeds * len(self.rules)
        return (runs + self.games) * 2 * self.draws


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    cpu: float
    wall: float
    peak_megabytes: float


def cells_of(shape: Shape) -> Iterator[pa.Table]:
    """The episodes of an invented study, one table per game."""
    rng = np.random.default_rng(7)
    runs = [(f"{8 * 3**b}M", f"agent{a}", str(s), "", rule)
            for b in range(shape.budgets) for a in range(shape.agents) for s in range(1, shape.seeds + 1)
            for rule in shape.rules]  # fmt: skip
    for game in GAMES[: shape.games]:
        cells = [(*run, level_set, draw) for run in [("", "", "", "uniform", "uniform"), *runs]
                 for level_set in LEVELS for draw in range(shape.draws)]  # fmt: skip
        n = shape.episodes
        columns: dict[str, pa.Array] = {"game": _repeated([game] * len(cells), n)}
        names = ("budget", "agent", "seed", "reference", "rule", "level_set")
        for i, name in enumerate(names):
            columns[name] = _repeated([cell[i] for cell in cells], n)
        columns["draw"] = pa.array(np.repeat([cell[-1] for cell in cells], n))
        columns["slot"] = pa.array(np.tile(np.arange(n) % 16, len(cells)))
        columns["index"] = pa.array(np.tile(np.arange(n) // 16, len(cells)))
        levels = [np.sort(rng.integers(*LEVELS[cell[-2]], size=n)) for cell in cells]
        columns["level_seed"] = pa.array(np.concatenate(levels))
        returns = [rng.binomial(40, 0.1 + 0.2 * (cell[3] == "") * rng.random(), size=n) for cell in cells]
        columns["episode_return"] = pa.array(np.concatenate(returns).astype(float))
        columns["length"] = pa.array(rng.integers(5, 1000, size=n * len(cells)))
        yield pa.table(columns)


def _repeated(values: list[str], n: int) -> pa.Array:
    encoded = pa.array(values).dictionary_encode()
    indices = pa.array(np.repeat(encoded.indices.to_numpy(), n))
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)


def write_parquet(shape: Shape, path: Path) -> int:
    """Write a study as one Parquet file; returns its episodes."""
    parts = cells_of(shape)
    first = next(parts)
    n = first.num_rows
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)
            n += part.num_rows
    return n


def write_csv(megabytes: float, path: Path) -> int:
    """Write a study of about this size as CSV; returns its episodes."""
    # An episode takes about 57 bytes.
    episodes = max(16, int(megabytes * 1e6 / 57 / Shape(agents=4).cells))
    n = 0
    with path.open("wb") as out:
        for i, part in enumerate(cells_of(Shape(agents=4, episodes=episodes))):
            plain = pa.table({name: _plain(part[name]) for name in part.column_names})
            pa_csv.write_csv(plain, out, pa_csv.WriteOptions(include_header=i == 0, quoting_style="none"))
            n += part.num_rows
    return n


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def write_store(shape: Shape, root: Path) -> int:
    """Write a study as a store; returns its cells."""
    from gapfloor.records.store import Store

    # What is invented need not survive a power cut: without waiting for the disk the store is written in seconds.
    os.fsync = lambda _: None
    store, n = Store(root), shape.episodes
    store.prepare()
    for part in cells_of(shape):
        for at in range(0, part.num_rows, n):
            rows = part.slice(at, n)
            labels = {name: _plain(rows[name])[0].as_py() for name in STORE_LABELS}
            labels |= {"mode": "easy", "seed": int(labels["seed"]) if labels["seed"] else None}
            low, high = LEVELS[labels["level_set"]]
            content = {
                "protocol": 1, "engine": "invented", "game": labels["game"], "mode": "easy", "options": {},
                "level_set": labels["level_set"], "levels": f"{low}:{high}", "draw": labels["draw"], "slots": 16,
                "burn_in": 1, "episodes": n, "rule": labels["rule"],
                "policy": f"{labels['agent']} {labels['seed']} {labels['budget']}",
            }  # fmt: skip
            key = hashlib.sha256(repr(labels).encode()).hexdigest()
            columns = {name: rows[name].to_numpy() for name in COUNTED}
            store.write_cell(
                file_name=key, content=content, labels=labels, columns=columns, record=_record(labels)
            )
    return shape.cells


def _record(labels: dict[str, Any]) -> dict[str, Any]:
    """What a run's cell says about entropy; the numbers are those of an agent that is close to uniform."""
    if labels["reference"]:
        return {"n_steps": 4096}
    entropies = {"entropy_raw": 2.5, "entropy_first1024": 2.5, "entropy_probe": 2.5}
    merged = {"merged_state": 1.9, "merged_game": 2.0, "mean_ln_k": 2.1, "k": 9}
    return {"n_steps": 4096, "action_counts": [300] * 15, **entropies, **merged}


def measure(command: list[str]) -> Cost:
    """Run one command of gapfloor in a process of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "gapfloor.cli.main", *command], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"gapfloor {' '.join(command)} ended with status {status}")
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)


def exponent(sizes: list[float], costs: list[float]) -> float:
    """The slope of log cost over log size."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def table(title: str, unit: str, rows: list[tuple[float | str, list[Cost]]]) -> str:
    """One topic; the exponent is fitted where sizes are numbers."""
    lines = [f"{title}:", "", f"| {unit} | CPU s | wall s | peak MB |", "|---:|---:|---:|---:|"]
    for size, costs in rows:
        cpu, wall, peak = (
            statistics.median(getattr(cost, name) for cost in costs)
            for name in ("cpu", "wall", "peak_megabytes")
        )
        shown = size if isinstance(size, str) else f"{size:,.0f}"
        lines.append(f"| {shown} | {cpu:.{1 + (cpu < 1)}f} | {wall:.{1 + (wall < 1)}f} | {peak:.0f} |")
    sizes = [size for size, _ in rows if not isinstance(size, str)]
    if len(sizes) > 1:
        medians = [statistics.median(cost.cpu for cost in costs) for _, costs in rows]
        last = exponent(sizes[-2:], medians[-2:])
        lines += [
            "",
            f"Fitted exponent of CPU seconds: {exponent(sizes, medians):.2f} (last two sizes: {last:.2f}).",
        ]
    return "\n".join(lines)


def instruction_set() -> str:
    """The widest vector instructions of this processor."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return next((name for name in ("avx512f", "avx2") if name in flags), platform.machine())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", default=[], help=f"of {', '.join(TOPICS)} (default: all)")
    parser.add_argument("--write", type=Path, default=None, metavar="PAGE")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--episodes", type=int, nargs="+", default=[72, 720, 2880])
    parser.add_argument("--agents", type=int, nargs="+", default=[2, 5, 10, 20])
    parser.add_argument("--store-seeds", type=int, nargs="+", default=[1, 3, 6])
    parser.add_argument("--csv-megabytes", type=float, nargs="+", default=[64, 256, 1024])
    arguments = parser.parse_args()
    command = " ".join(["benchmarks/analysis_scaling.py", *arguments.topics])
    parts = [
        f"Measured with `{command}`: {os.cpu_count()} cores, {instruction_set()}, load before "
        f"{os.getloadavg()[0]:.1f}, medians of {arguments.repeats}."
    ]
    print(parts[0], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for topic in arguments.topics or TOPICS:
            try:
                parts.append(TOPICS[topic](Path(folder), arguments))
            except (Exception, SystemExit) as error:
                parts.append(f"{topic}: not measured: {error}")
            print(f"\n{parts[-1]}", flush=True)
            if arguments.write:  # what has been measured survives whatever happens to the rest
                write_between(arguments.write, "analysis_scaling", "\n\n".join(parts))


def _repeat(path: Path, repeats: int) -> list[Cost]:
    return [measure(["analyse", str(path), "--out", f"{path}.results{i}"]) for i in range(repeats)]


def _episodes(folder: Path, arguments: argparse.Namespace) -> str:
    rows: list[tuple[float | str, list[Cost]]] = []
    for episodes in arguments.episodes:
        path = folder / "episodes.parquet"
        n = write_parquet(Shape(seeds=6, episodes=episodes), path)
        rows.append((n, _repeat(path, arguments.repeats)))
    return table("Episodes (16 games x 2 agents x 6 seeds x 2 rules, Parquet)", "episodes", rows)


def _agents(folder: Path, arguments: argparse.Namespace) -> str:
    rows: list[tuple[float | str, list[Cost]]] = []
    for agents in arguments.agents:
        path = folder / "agents.parquet"
        write_parquet(Shape(agents=agents), path)
        rows.append((agents, _repeat(path, arguments.repeats)))
    return table("Agents (16 games x 3 seeds x 2 rules, 128 episodes per cell, Parquet)", "agents", rows)


def _store(folder: Path, arguments: argparse.Namespace) -> str:
    rows: list[tuple[float | str, list[Cost]]] = []
    listed: list[tuple[float | str, list[Cost]]] = []
    for seeds in arguments.store_seeds:
        path = folder / f"store{seeds}"
        n = write_store(Shape(agents=10, budgets=1, seeds=seeds, episodes=16), path)
        rows.append((n, _repeat(path, arguments.repeats)))
        listed.append((n, [_list_cells(path) for _ in range(arguments.repeats)]))
    shape = "16 games x 10 agents x 2 rules, 16 episodes per cell"
    return "\n\n".join(
        [
            table(f"Cells of a store ({shape})", "cells", rows),
            table("What one task of a study does with them: list the cells", "cells", listed),
        ]
    )


def _list_cells(path: Path) -> Cost:
    """What one task of a study spends on finding out which cells there are, in this process."""
    from gapfloor.records.store import Store

    cpu, wall = time.process_time(), time.perf_counter()
    Store(path).cells()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(time.process_time() - cpu, time.perf_counter() - wall, peak)


def _csv(folder: Path, arguments: argparse.Namespace) -> str:
    rows: list[tuple[float | str, list[Cost]]] = []
    for megabytes in arguments.csv_megabytes:
        path = folder / "episodes.csv"
        write_csv(megabytes, path)
        rows.append((path.stat().st_size / 1e6, _repeat(path, arguments.repeats)))
        path.unlink()
    return table("CSV (16 games x 4 agents x 3 seeds x 2 rules)", "megabytes", rows)


def _report(folder: Path, arguments: argparse.Namespace) -> str:
    shape = Shape(agents=10, budgets=3, seeds=3, draws=2, episodes=16)
    store, out = folder / "large", folder / "large-report"
    n = write_store(shape, store)
    steps: dict[str, list[str]] = {
        "analyse": ["analyse", str(store)],
        "report, without print figures": ["--formats", "tex,md,csv,html,card,methods"],
        "report, all formats": [],
    }
    rows: list[tuple[float | str, list[Cost]]] = []
    for name, command in steps.items():
        full = command if name == "analyse" else ["report", str(store), "--out", str(out), *command]
        rows.append((name, [measure(full) for _ in range(arguments.repeats)]))
    size = (out / "index.html").stat().st_size / 1e6
    title = f"Report of 16 games x 3 budgets x 10 agents ({n:,} cells), a page of {size:.1f} MB"
    return table(title, "command", rows)


TOPICS = {"episodes": _episodes, "agents": _agents, "store": _store, "report": _report, "csv": _csv}

if __name__ == "__main__":
    main()
