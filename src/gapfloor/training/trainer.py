"""`train`: a run from its specification to its checkpoint, resumed exactly when it was stopped.

After every update the resume state is replaced first, then the log and the checkpoint, which follow from it. A
process that is killed at any moment resumes from the last complete update and ends with the same bytes as one that
was never stopped, on any number of threads.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gapfloor import __version__
from gapfloor.disk_errors import explain_disk_errors
from gapfloor.engines.procgen import ProcgenEngine, wheel_version
from gapfloor.errors import StoreError, UsageError
from gapfloor.records.atomic import remove_leftovers
from gapfloor.tables.readable import ReadableResult
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import write_checkpoint
from gapfloor.training.checkpoint_file import read_header
from gapfloor.training.log import LogRow, TrainingMonitor, write_log
from gapfloor.training.ppo import Position, Rollout, collect_rollout, update
from gapfloor.training.precision import check_bf16
from gapfloor.training.resume_state import (
    RECENT_EPISODES,
    RunProgress,
    load_progress,
    read_state_header,
    save_progress,
)
from gapfloor.training.spec import TrainingSpec, describe_difference
from gapfloor.training.streams import draw_seed, make_stream
from gapfloor.training.workers import Workers, start_workers


@dataclass(frozen=True, repr=False)
class TrainingResult(ReadableResult):
    """A run in the store."""

    run: str
    """Its name."""
    checkpoint: Path
    """The file of its weights; its folder can be given to `evaluate`."""
    fingerprint: str
    """Hash of the weights."""
    steps: int
    """Environment steps of training."""
    updates_done_here: int
    """Updates that this call made: 0 when the run was already done."""

    def sentences(self) -> list[str]:
        """Which run, how long, and where it is."""
        if self.updates_done_here == 0:
            return [f"{self.run} is done ({self.steps:,} steps): {self.checkpoint}"]
        return [f"{self.run}: {self.steps:,} steps, {self.checkpoint}"]


@dataclass(frozen=True)
class Tick:
    """What an observer receives after each update."""

    row: LogRow
    n_updates: int
    steps_per_second: float
    seconds_left: float


def train(
    spec: TrainingSpec,
    *,
    store: Path,
    threads: int = 1,
    device: str = "cpu",
    checkpoint_every: int = 0,
    observe: Callable[[Tick], None] | None = None,
    with_tensorboard: bool = True,
) -> TrainingResult:
    """Train the run of `spec` in `store`, resume it, or return the finished run.

    `threads` and `checkpoint_every` (updates between checkpoints kept in `history/`, 0 for none) change no
    result. `observe` is called after every update.
    """
    if threads < 1:
        raise UsageError(f"The number of threads is {threads}: it must be 1 or more.")
    if checkpoint_every < 0:
        raise UsageError(f"--checkpoint-every is {checkpoint_every}: it must be 0 (never) or more.")
    _check_device(device)
    folder = Path(store) / "runs" / spec.run
    paths = _Paths(
        folder / "checkpoint.safetensors", folder / "log.parquet", folder / "resume" / "state.safetensors"
    )
    done = _find_finished(spec, paths)
    if done is not None:
        return done
    if spec.hyperparameters.precision == "bf16" and device == "cpu":
        check_bf16(spec.encoder)
    with explain_disk_errors(folder):
        paths.state.parent.mkdir(parents=True, exist_ok=True)
    with _only_process(folder), start_workers(threads) as workers:
        remove_leftovers(folder)
        return _run(spec, Path(store), paths, workers, device, checkpoint_every, observe, with_tensorboard)


@dataclass(frozen=True)
class _Paths:
    checkpoint: Path
    log: Path
    state: Path


def _run(
    spec: TrainingSpec,
    store: Path,
    paths: _Paths,
    workers: Workers,
    device: str,
    checkpoint_every: int,
    observe: Callable[[Tick], None] | None,
    with_tensorboard: bool,
) -> TrainingResult:
    hyper, versions = spec.hyperparameters, _versions(device)
    progress = _begin(spec, paths, versions, device)
    monitor = TrainingMonitor(
        store, spec.run, from_steps=progress.iteration * hyper.batch, with_tensorboard=with_tensorboard
    )
    rollout = Rollout.allocate(hyper, progress.engine.observation_shape)
    fingerprint = _publish(spec, progress, paths, versions, checkpoint_every) if progress.iteration else ""
    first, started = progress.iteration, time.perf_counter()
    try:
        while progress.iteration < spec.n_updates:
            row = _iterate(progress, rollout, spec, workers)
            save_progress(paths.state, progress, spec=spec.to_dict(), versions=versions)
            fingerprint = _publish(spec, progress, paths, versions, checkpoint_every)
            here = progress.iteration - first
            speed = here * hyper.batch / (time.perf_counter() - started)
            before = row.steps - hyper.batch
            episodes = [(before + e.at, e.episode_return, e.length) for e in rollout.episodes]
            monitor.write(row, episodes=episodes, steps_per_second=speed)
            if observe is not None:
                left = (spec.n_updates - progress.iteration) * hyper.batch / speed
                observe(Tick(row, spec.n_updates, speed, left))
    finally:
        monitor.close()
        progress.engine.close()
    return TrainingResult(
        spec.run, paths.checkpoint, fingerprint, progress.iteration * hyper.batch, progress.iteration - first
    )


def _iterate(progress: RunProgress, rollout: Rollout, spec: TrainingSpec, workers: Workers) -> LogRow:
    """One rollout and one update."""
    hyper = spec.hyperparameters
    collect_rollout(
        progress.agent, progress.engine, progress.position, rollout,
        hyper=hyper, actions=progress.streams["actions"], workers=workers,
    )  # fmt: skip
    terms = update(
        progress.agent, progress.optimiser, rollout, progress.position,
        hyper=hyper, minibatches=progress.streams["minibatches"], workers=workers,
    )  # fmt: skip
    progress.recent.extend((episode.episode_return, episode.length) for episode in rollout.episodes)
    progress.iteration += 1
    recent = np.array(progress.recent) if progress.recent else np.full((1, 2), np.nan)
    row = LogRow(
        iteration=progress.iteration,
        steps=progress.iteration * hyper.batch,
        in_loop_return=float(recent[:, 0].mean()),
        in_loop_length=float(recent[:, 1].mean()),
        n_episodes=len(rollout.episodes),
        entropy_nats=rollout.entropy_nats,
        learning_rate=hyper.learning_rate,
        **terms,
    )
    progress.log.append(row)
    return row


def _begin(spec: TrainingSpec, paths: _Paths, versions: dict[str, str], device: str) -> RunProgress:
    """A new run's progress, or that of its resume state."""
    hyper = spec.hyperparameters
    has_state = paths.state.exists()
    header: dict[str, Any] = {}
    if has_state:
        header = read_state_header(paths.state)
        _refuse_difference(header["spec"], spec, paths.state)
        if header["versions"]["procgen"] != versions["procgen"]:
            raise StoreError(
                f"{spec.run} was begun with the ProcGen build {header['versions']['procgen']} and "
                f"{versions['procgen']} is installed: install the former, which its engine states need."
            )
    elif paths.checkpoint.exists():
        raise StoreError(
            f"{paths.checkpoint.parent} holds an unfinished checkpoint and no resume state: delete the folder to "
            "train the run again, or choose another --store."
        )
    engine = ProcgenEngine(
        spec.game,
        slots=hyper.environments,
        levels=spec.levels,
        mode=spec.mode,
        draw=draw_seed(spec.seed, "levels"),
    )
    agent = make_agent(
        spec.encoder, observation_shape=engine.observation_shape, n_actions=engine.n_actions,
        seed=draw_seed(spec.seed, "initialisation"), is_blind=spec.is_blind,
    ).to(device)  # fmt: skip
    optimiser = torch.optim.Adam(agent.parameters(), lr=hyper.learning_rate, eps=hyper.adam_epsilon)
    if has_state:
        progress = load_progress(paths.state, agent=agent, optimiser=optimiser, engine=engine)
        if header["versions"] != versions:
            progress.earlier_versions.append(header["versions"])
        return progress
    position = Position.start(engine, rewards=hyper.rewards)
    streams = {purpose: make_stream(spec.seed, purpose) for purpose in ("actions", "minibatches")}
    return RunProgress(0, agent, optimiser, engine, position, streams, deque(maxlen=RECENT_EPISODES), [], [])


def _publish(
    spec: TrainingSpec, progress: RunProgress, paths: _Paths, versions: dict[str, str], checkpoint_every: int
) -> str:
    """Write log and checkpoint of the current update; the hash of the checkpoint's contents."""
    header = {
        **spec.to_dict(),
        "iteration": progress.iteration,
        "steps": progress.iteration * spec.hyperparameters.batch,
        "observation_shape": list(progress.engine.observation_shape),
        "n_actions": progress.engine.n_actions,
        "n_parameters": sum(p.numel() for p in progress.agent.encoder.parameters()),
        "versions": versions,
        "earlier_versions": progress.earlier_versions,
    }
    if checkpoint_every and progress.iteration % checkpoint_every == 0:
        kept = paths.checkpoint.parent / "history" / f"{header['steps']:010d}.weights"
        write_checkpoint(kept, progress.agent, header)
    write_log(paths.log, progress.log, spec)
    return write_checkpoint(paths.checkpoint, progress.agent, header)


def _find_finished(spec: TrainingSpec, paths: _Paths) -> TrainingResult | None:
    """The finished run in this folder, or None; refuses a folder that holds another run."""
    if not paths.checkpoint.exists():
        return None
    header = read_header(paths.checkpoint)
    _refuse_difference(header, spec, paths.checkpoint)
    if header["iteration"] < spec.n_updates:
        return None
    return TrainingResult(spec.run, paths.checkpoint, header["content_hash"], header["steps"], 0)


def _refuse_difference(recorded: dict[str, Any], spec: TrainingSpec, path: Path) -> None:
    asked = spec.to_dict()
    difference = describe_difference({name: recorded.get(name) for name in asked}, asked)
    if difference:
        raise StoreError(
            f"{path} belongs to another run of this name: {difference}. Give another --budget label or --store."
        )


def _check_device(device: str) -> None:
    if device not in ("cpu", "cuda"):
        raise UsageError(f"The device is '{device}': choose cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError("torch sees no CUDA device: use --device cpu.")


def _versions(device: str) -> dict[str, str]:
    """What can change the last bits of a result, apart from the specification."""
    return {
        "gapfloor": __version__,
        "numpy": np.__version__,
        "torch": torch.__version__,
        "procgen": wheel_version(),
        "device": device,
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
    }


@contextlib.contextmanager
def _only_process(folder: Path) -> Iterator[None]:
    """Hold the run's lock; the system releases it when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    handle = os.open(folder / "resume" / "lock", os.O_CREAT | os.O_RDWR)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{folder.name} is being trained by another process: wait for it.") from None
        yield
    finally:
        os.close(handle)
