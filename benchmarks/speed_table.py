"""One table of speed against the peers: `make bench` writes it into docs/performance.md.

    .venv/bin/python benchmarks/speed_table.py [--repeats 3] [--only sampled,floor-paper] [--quick] [--write PAGE]
        [--cleanrl CLONE --cleanrl-python PYTHON] [--rliable PYTHON]

`--list` prints the names of the rows; `--only` takes names or their beginnings. A row that fails says so and the others
are measured. Every side runs as new processes, so start-up counts on both: ours is the command line with its default
settings, the peers use two processes (one per level set) with one thread each, their fastest layout on two cores. The
sides take turns and each turn gives one ratio; the table has the median and the range of the ratios. With three turns
the whole table takes about half an hour on two free cores. Counted steps are those of the episodes that enter a
result; EnvPool is given all of its steps. Training speeds are those that both programs report, without start-up. The
load of other processes is in every row.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

import bootstrap_speed
import calibration_speed
import floor_speed
import page_tables
import training_speed
from gapfloor.engines.procgen import PAPER_GAMES, make_spec
from gapfloor.machine import available_cores
from gapfloor.policies.fingerprint import instruction_set
from gapfloor.records.store import Store
from gapfloor.statistics import convolution

HERE = Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
LEVELS = ("0:200", "1000:1100")


@dataclass(frozen=True)
class Timed:
    """What one side did in one turn."""

    steps: float
    wall: float
    cpu: float
    other_load: float
    """Cores that other processes kept busy meanwhile."""

    @property
    def rate(self) -> float:
        """Steps per wall second."""
        return self.steps / self.wall

    @property
    def cpu_rate(self) -> float:
        """Steps per second of processor time."""
        return self.steps / self.cpu


@dataclass(frozen=True)
class Contest:
    """A row of the table: what is measured, and the two sides."""

    name: str
    peer: str
    ours: Callable[[], Timed]
    theirs: Callable[[Timed], Timed]
    """Gets our last turn, for contests over the same number of steps."""
    unit: str = "counted steps/s"


def _busy_seconds() -> float:
    """Processor seconds that all processes of the machine have used."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    ticks = sum(int(field) for field in fields) - int(fields[3]) - int(fields[4])
    return ticks / os.sysconf("SC_CLK_TCK")


def _own_cpu() -> float:
    return sum(
        each.ru_utime + each.ru_stime
        for each in (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF))
    )


def timed(work: Callable[[], float]) -> Timed:
    """Run `work`, which returns its steps, with its wall and processor time, children included."""
    cpu, busy, start = _own_cpu(), _busy_seconds(), time.perf_counter()
    steps = work()
    wall = time.perf_counter() - start
    cpu, busy = _own_cpu() - cpu, _busy_seconds() - busy
    return Timed(steps, wall, cpu, max(0.0, (busy - cpu) / wall))


def processes(*commands: Sequence[str]) -> float:
    """Run commands side by side; the steps that they print."""
    environment = os.environ | ONE_THREAD
    running = [
        subprocess.Popen(
            [sys.executable, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]  # fmt: skip
    steps = 0.0
    for command, process in zip(commands, running, strict=True):
        out, error = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{error}")
        steps += json.loads(out.splitlines()[-1])["steps"]
    return steps


def gapfloor(*arguments: str, references: bool) -> float:
    """Run a command of ours on an empty store; the counted steps of its runs, or of its references."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gapfloor.cli.main", *arguments, "--store", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        return float(
            sum(
                cell.manifest.record["n_steps"]
                for cell in Store(folder).cells()
                if cell.is_reference == references
            )
        )


def evaluation(
    game: str, rule: str, network: str, agent: str, *, few: list[str], theirs: int, ours: int
) -> Contest:
    """`gapfloor evaluate` against SB3; `theirs` and `ours` are episodes per level set."""
    script = str(HERE / "peer_sb3.py")
    peers = [
        [script, agent, "--game", game, "--levels", levels, "--episodes", str(theirs), "--rule", rule, "--network",
         network]
        for levels in LEVELS
    ]  # fmt: skip
    name = f"evaluate, {game}, {rule}"
    note = "" if theirs == ours else f" ({theirs} episodes per level set; ours {ours})"
    peer = {"own": "SB3, its own policy", "ours": "SB3, our torch network"}[network]
    return Contest(
        name,
        peer + note,
        lambda: timed(lambda: gapfloor("evaluate", agent, "--game", game, "--rules", rule, *few, references=False)),
        lambda _: timed(lambda: processes(*peers)),
    )  # fmt: skip


def floor(games: str, named: Sequence[str], few: list[str]) -> Contest:
    """`gapfloor floor` against EnvPool on as many steps, shared out evenly over games and level sets."""
    script = str(HERE / "peer_envpool.py")

    def theirs(mine: Timed) -> Timed:
        share = json.dumps({game: int(mine.steps / len(named) / len(LEVELS)) for game in named})
        return timed(lambda: processes(*([script, share, "--levels", levels] for levels in LEVELS)))

    return Contest(
        f"floor {games}", "EnvPool, 2 processes",
        lambda: timed(lambda: gapfloor("floor", games, *few, references=True)), theirs,
    )  # fmt: skip


def steady_floor(game: str) -> Contest:
    """The player in one process after start-up, against the bare engine loop with 32 slots."""
    draws = iter(range(0, 3000, 3))
    floor_speed.bare(game, 3200)  # reads the engine's assets

    def ours() -> Timed:
        first = next(draws)
        return timed(lambda: float(floor_speed.harness(game, range(first, first + 3))[1]))

    def theirs(mine: Timed) -> Timed:
        def play() -> float:
            floor_speed.bare(game, int(mine.steps), slots=32)
            return mine.steps

        return timed(play)

    return Contest(f"floor {game}, steady, one process", "the bare engine loop", ours, theirs)


def calibration(game: str, n_states: int) -> Contest:
    """Calibration of a game with default settings against a plain loop over the same states."""
    from gapfloor.calibration import CalibrationSettings, state_partitions, visited_states

    spec = make_spec(game)
    states = visited_states(spec, levels=CalibrationSettings().levels, n_states=n_states, seed=0)

    def ours() -> float:
        state_partitions(spec, states, workers=available_cores())
        return float(n_states)

    def plain() -> float:
        calibration_speed.plain(game, states)
        return float(n_states)

    return Contest(
        f"calibrate {game}", "a plain loop", lambda: timed(ours), lambda _: timed(plain), "states/s"
    )


def training(precision: str, chosen: argparse.Namespace) -> Contest:
    """Two updates of PPO (one in bf16) against as many of CleanRL, both on all cores."""
    if chosen.cleanrl is None:
        raise RuntimeError("no clone of CleanRL was named (--cleanrl)")
    updates = 1 if chosen.quick or precision != "float32" else 2
    clone, python = chosen.cleanrl.resolve(), chosen.cleanrl_python.absolute()

    def as_timed(speed: training_speed.Speed) -> Timed:
        steps = updates * training_speed.BATCH
        other = speed.others * available_cores()
        return Timed(steps, steps / speed.steps_per_second, steps / speed.steps_per_cpu_second, other)

    def ours() -> Timed:
        measured = training_speed.measure_gapfloor(
            updates, runs=1, threads=available_cores(), precision=precision
        )
        return as_timed(measured)

    return Contest(
        f"train starpilot, {precision}", "CleanRL ppo_procgen, float32", ours,
        lambda _: as_timed(training_speed.measure_cleanrl(updates, clone, python)), "environment steps/s",
    )  # fmt: skip


def bootstrap(kind: str, peer: str, chosen: argparse.Namespace) -> Contest:
    """One interval of a difference of means with 10,000 resamples on one kind of floor."""
    if peer == "rliable" and chosen.rliable is None:
        raise RuntimeError("no interpreter with rliable was named (--rliable)")
    data = [(np.random.default_rng(2).normal(5.0, 1.0, 6), bootstrap_speed.kinds()[kind])]
    bootstrap_speed.ours(data), bootstrap_speed.scipys(data)  # imports do not count

    def ours() -> float:
        for _ in range(20):
            convolution._cached.cache_clear()  # nothing is kept from one interval to the next
            bootstrap_speed.ours(data)
        return 20.0

    def theirs(_: Timed) -> Timed:
        if peer == "scipy":
            return timed(lambda: float(len(bootstrap_speed.scipys(data))))
        seconds = bootstrap_speed.time_rliable(chosen.rliable, data, 1)
        return Timed(1.0, seconds, seconds, 0.0)

    return Contest(f"bootstrap, {kind}", peer, lambda: timed(ours), theirs, "intervals/s")


def contests(chosen: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    """The rows of the table by name; each is made when it is needed."""
    quick = chosen.quick
    few = ["--episodes", "16", "--draws", "0"] if quick else []
    ours = 16 if quick else 384

    def agent(game: str) -> str:
        return str(HERE.parent / "agents" / f"{game}-easy-impala-100k-s1")

    def play(game: str, rule: str, network: str = "own", episodes: int = 384) -> Callable[[], Contest]:
        theirs = 16 if quick else episodes
        return lambda: evaluation(game, rule, network, agent(game), few=few, theirs=theirs, ours=ours)

    def calibrate(game: str) -> Callable[[], Contest]:
        return lambda: calibration(game, 40 if quick else 400)

    def resample(kind: str, peer: str) -> Callable[[], Contest]:
        return lambda: bootstrap(kind, peer, chosen)

    return {
        "sampled-starpilot": play("starpilot", "sampled"),
        "sampled-starpilot-our-network": play("starpilot", "sampled", "ours"),
        # A miner's episodes are long: SB3 would need an hour for as many greedy ones as ours.
        "sampled-miner": play("miner", "sampled", episodes=32),
        "greedy-starpilot": play("starpilot", "greedy"),
        "greedy-fruitbot": play("fruitbot", "greedy"),
        "greedy-miner": play("miner", "greedy", episodes=32),
        "floor-starpilot": lambda: floor("starpilot", ["starpilot"], few),
        "floor-paper": lambda: floor("paper", PAPER_GAMES, few),
        "steady-starpilot": lambda: steady_floor("starpilot"),
        "steady-heist": lambda: steady_floor("heist"),
        "calibration-starpilot": calibrate("starpilot"),
        "calibration-coinrun": calibrate("coinrun"),
        "training-float32": lambda: training("float32", chosen),
        "training-bf16": lambda: training("bf16", chosen),
        **{
            f"bootstrap-{peer}-{kind.replace(' ', '-').replace(',', '')}": resample(kind, peer)
            for peer in ("scipy", "rliable")
            for kind in ("384 whole numbers", "384 real values", "3,840 whole numbers", "3,840 real values")
        },
    }


def row(name: str, make: Callable[[], Contest], repeats: int) -> str:
    """The contest's row: both sides in turn; a failure becomes a row too."""
    try:
        return _measured_row(make(), repeats)
    except (Exception, SystemExit) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        return f"| {name} | not measured: {reason.replace('|', '/')} | | | | | | | |"


def _measured_row(contest: Contest, repeats: int) -> str:
    mine, other = [], []
    for _ in range(repeats):
        mine.append(contest.ours())
        other.append(contest.theirs(mine[-1]))
    ratios = sorted(a.rate / b.rate for a, b in zip(mine, other, strict=True))
    cpu = statistics.median(a.cpu_rate / b.cpu_rate for a, b in zip(mine, other, strict=True))
    load = statistics.median(each.other_load for each in (*mine, *other))
    median = statistics.median
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, {repeats} turns" if repeats > 1 else "one turn"
    return (
        f"| {contest.name} | {contest.peer} | {_rate(a.rate for a in mine)} | "
        f"{_rate(b.rate for b in other)} | {contest.unit} | {median(a.wall for a in mine):.1f} s | "
        f"**{median(ratios):.2f}** ({spread}) | {cpu:.2f} | {load:.1f} |"
    )


def _rate(rates: Iterable[float]) -> str:
    rate = statistics.median(rates)
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2f}"


def peak() -> float:
    """GFLOP/s of torch's float32 product of 512 x 512 matrices on one thread: the best of many rounds."""
    code = (
        "import torch, time\n"
        "torch.set_num_threads(1); a = torch.ones(512, 512); best = 9.0\n"
        "for _ in range(100):\n"
        "    start = time.process_time(); a @ a; best = min(best, time.process_time() - start)\n"
        "print(2 * 512**3 / best / 1e9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def header() -> str:
    """The machine and the versions."""
    facts = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in facts if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    packages = ("onnxruntime", "torch", "stable-baselines3", "envpool", "procgen-mirror", "numpy")
    return (
        f"{cpu}, {available_cores()} cores, {instruction_set()}, measured peak {peak():.0f} GFLOP/s per core (float32 "
        f"matrix product); Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in packages)
        + f". Load before: {os.getloadavg()[0]:.1f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="turns of each row (default: 3)")
    parser.add_argument("--only", default="", help="rows or beginnings of their names, separated by commas")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--quick", action="store_true", help="a few episodes, to see that everything runs")
    parser.add_argument("--write", type=Path, default=None, metavar="PAGE")
    parser.add_argument("--cleanrl", type=Path, default=None, metavar="CLONE")
    parser.add_argument("--cleanrl-python", type=Path, default=Path(sys.executable), metavar="PYTHON")
    parser.add_argument("--rliable", type=Path, default=None, metavar="PYTHON")
    chosen = parser.parse_args()
    rows = contests(chosen)
    wanted = tuple(filter(None, chosen.only.split(",")))
    names = [name for name in rows if not wanted or name.startswith(wanted)]
    if chosen.list or not names:
        print("\n".join(rows))
        return
    command = "benchmarks/speed_table.py" + (f" --only {chosen.only}" if wanted else "")
    lines = [
        f"Measured with `{command}`: {header()}",
        "",
        "| what | against | ours | theirs | unit | our time | ratio, wall time | ratio, CPU time | other load |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for name in names:
        lines.append(row(name, rows[name], chosen.repeats))
        print(lines[-1], flush=True)
        if chosen.write:  # what has been measured survives whatever happens to the rest
            page_tables.write_between(chosen.write, "make bench", "\n".join(lines))


if __name__ == "__main__":
    main()
