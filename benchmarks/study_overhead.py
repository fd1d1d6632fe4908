"""Overhead of the study runner over its bare tasks, and cells per second on one worker and on two.

    .venv/bin/python benchmarks/study_overhead.py [--episodes 64]

The study evaluates an agent of agents/ on starpilot. "Bare" is every task in turn in one process that has everything
imported; the runner starts a worker process, reads the store, schedules and writes its journal. This is wall time, so
the machine must be idle; the share of it that other processes took is printed too.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from gapfloor.records.store import Store
from gapfloor.study.executors import LocalExecutor, StudyAssignment
from gapfloor.study.graph import build_graph
from gapfloor.study.model import EvaluationSettings, RunGroup, Study
from gapfloor.study.runner import run_study
from gapfloor.study.survey import Survey
from gapfloor.study.tasks import Workplace

HOME = Path(__file__).resolve().parents[1] / "studies"


class Quiet:
    """Hears nothing but failures."""

    def start(self, todo, done): ...

    def begun(self, task): ...

    def ended(self, ending, *, again):
        if ending.error:
            raise RuntimeError(ending.details)


def make_study(episodes: int) -> Study:
    runs = RunGroup(
        games=("starpilot",),
        steps=100_000,
        encoders=("impala",),
        seeds=(1,),
        budget="100k",
        checkpoints="../agents",
    )
    settings = EvaluationSettings(draws=(0, 1), episodes=episodes, probe=128)
    study = Study("bench", (runs,), evaluation=settings, replays=1, formats=("md", "html"))
    object.__setattr__(study, "home", HOME)  # as if its file were there
    return study


def bare(study: Study, root: Path) -> float:
    start = time.perf_counter()
    for task in build_graph(study):
        task.perform(Workplace(study, Store(root)))
    return time.perf_counter() - start


def runner(study: Study, root: Path, workers: int) -> float:
    start = time.perf_counter()
    run_study(
        Survey(study, root),
        make_executor=lambda note: LocalExecutor(StudyAssignment(study, str(root)), workers=workers),
        listener=Quiet(),
    )
    return time.perf_counter() - start


def busy() -> tuple[float, float]:
    """Processor seconds of the whole machine and of this process with its children."""
    fields = [int(value) for value in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    own = os.times()
    whole = (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK")
    return whole, own.user + own.system + own.children_user + own.children_system


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=64)
    arguments = parser.parse_args()
    study = make_study(arguments.episodes)
    with tempfile.TemporaryDirectory() as warm:
        Store(warm).prepare()
        bare(make_study(16), Path(warm))  # imports, assets and compiled kernels
    seconds = {}
    before = busy()
    started = time.perf_counter()
    for name, workers in (("bare", 0), ("1 worker", 1), ("2 workers", 2)):
        with tempfile.TemporaryDirectory() as folder:
            Store(folder).prepare()
            seconds[name] = bare(study, Path(folder)) if not workers else runner(study, Path(folder), workers)
            cells = len(Store(folder).cells())
            print(f"{name}: {seconds[name]:.1f} s, {cells / seconds[name]:.2f} cells/s", flush=True)
    after = busy()
    others = (after[0] - before[0]) - (after[1] - before[1])
    print(f"overhead of the runner on one worker: {seconds['1 worker'] / seconds['bare'] - 1:.1%}")
    print(f"two workers over one: {seconds['1 worker'] / seconds['2 workers']:.2f}x")
    print(f"other processes took {others / (time.perf_counter() - started):.2f} cores")


if __name__ == "__main__":
    main()
