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
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from gapfloor import __version__
from gapfloor.engines.procgen import ProcgenEngine, wheel_version
from gapfloor.errors import StoreError, UsageError, explain_disk_errors
from gapfloor.records.atomic import remove_leftovers
from gapfloor.tables.readable import ReadableResult
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import read_header, write_checkpoint
from gapfloor.training.log import RECENT_EPISODES, LogRow, note_speed, write_log
from gapfloor.training.ppo import Position, Rollout, collect_rollout, update
from gapfloor.training.precision import check_bf16
from gapfloor.training.resume_state import RunProgress, read_state, save_progress
from gapfloor.training.spec import TrainingSpec
from gapfloor.training.streams import draw_seed, make_stream
from gapfloor.training.workers import start_workers


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
) -> TrainingResult:
    """Train the run of `spec` in `store`, resume it, or return the finished run.

    `threads` and `checkpoint_every` (updates between checkpoints kept in `history/`, 0 for none) change no
    result. `observe` is called after every update.
    """
    if threads < 1:
        raise UsageError(f"The number of threads is {threads}: it must be 1 or more.")
    if checkpoint_every < 0:
        raise UsageError(f"--checkpoint-every is {checkpoint_every}: it must be 0 (never) or more.")
    if device not in ("cpu", "cuda"):
        raise UsageError(f"The device is '{device}': choose cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError("torch sees no CUDA device: use --device cpu.")
    run = _Run(spec, Path(store), device, checkpoint_every)
    done = run.finished()
    if done is not None:
        return done
    if spec.hyperparameters.precision == "bf16" and device == "cpu":
        check_bf16(spec.encoder)
    with explain_disk_errors(run.folder):
        run.state.parent.mkdir(parents=True, exist_ok=True)
    with _only_process(run.folder), start_workers(threads) as workers:
        remove_leftovers(run.folder)
        return run.train(workers, observe)


@dataclass(frozen=True)
class _Run:
    """A run, where its files lie, and how it is trained."""

    spec: TrainingSpec
    store: Path
    device: str
    checkpoint_every: int

    @property
    def folder(self) -> Path:
        """The run's own folder."""
        return self.store / "runs" / self.spec.run

    @property
    def checkpoint(self) -> Path:
        """The latest weights."""
        return self.folder / "checkpoint.safetensors"

    @property
    def state(self) -> Path:
        """Everything that is needed to resume."""
        return self.folder / "resume" / "state.safetensors"

    def finished(self) -> TrainingResult | None:
        """The finished run in this folder, or None; refuses a folder that holds another run."""
        if not self.checkpoint.exists():
            return None
        header = read_header(self.checkpoint)
        self.spec.refuse_other(header, self.checkpoint)
        if header["iteration"] < self.spec.n_updates:
            return None
        return TrainingResult(self.spec.run, self.checkpoint, header["content_hash"], header["steps"], 0)

    def train(self, workers: Executor, observe: Callable[[Tick], None] | None) -> TrainingResult:
        """Every update that is still missing."""
        spec, hyper, versions = self.spec, self.spec.hyperparameters, _versions(self.device)
        progress = self._begin(versions)
        rollout = Rollout.allocate(hyper, progress.engine.observation_shape)
        fingerprint = self._publish(progress, versions) if progress.iteration else ""
        first, started = progress.iteration, time.perf_counter()
        try:
            while progress.iteration < spec.n_updates:
                row = _iterate(progress, rollout, spec, workers)
                save_progress(self.state, progress, spec=spec.to_dict(), versions=versions)
                fingerprint = self._publish(progress, versions)
                speed = (progress.iteration - first) * hyper.batch / (time.perf_counter() - started)
                note_speed(self.store, spec.run, row, speed)
                if observe is not None:
                    left = (spec.n_updates - progress.iteration) * hyper.batch / speed
                    observe(Tick(row, spec.n_updates, speed, left))
        finally:
            progress.engine.close()
        done = progress.iteration
        return TrainingResult(spec.run, self.checkpoint, fingerprint, done * hyper.batch, done - first)

    def _begin(self, versions: dict[str, str]) -> RunProgress:
        """A new run's progress, or that of its resume state."""
        spec, hyper = self.spec, self.spec.hyperparameters
        saved = read_state(self.state) if self.state.exists() else None
        begun: dict[str, str] = saved.header["versions"] if saved is not None else versions
        if saved is not None:
            spec.refuse_other(saved.header["spec"], self.state)
            if begun["procgen"] != versions["procgen"]:
                raise StoreError(
                    f"{spec.run} was begun with the ProcGen build {begun['procgen']} and {versions['procgen']} is "
                    "installed: install the former, which its engine states need."
                )
        elif self.checkpoint.exists():
            raise StoreError(
                f"{self.checkpoint.parent} holds an unfinished checkpoint and no resume state: delete the folder to "
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
        ).to(self.device)  # fmt: skip
        optimiser = torch.optim.Adam(agent.parameters(), lr=hyper.learning_rate, eps=hyper.adam_epsilon)
        if saved is not None:
            progress = saved.restore(agent=agent, optimiser=optimiser, engine=engine)
            if begun != versions:
                progress.earlier_versions.append(begun)
            return progress
        position = Position.start(engine)
        streams = {purpose: make_stream(spec.seed, purpose) for purpose in ("actions", "minibatches")}
        return RunProgress(
            0, agent, optimiser, engine, position, streams, deque(maxlen=RECENT_EPISODES), [], []
        )

    def _publish(self, progress: RunProgress, versions: dict[str, str]) -> str:
        """Write log and checkpoint of the current update; the hash of the checkpoint's contents."""
        spec = self.spec
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
        if self.checkpoint_every and progress.iteration % self.checkpoint_every == 0:
            kept = self.folder / "history" / f"{header['steps']:010d}.weights"
            write_checkpoint(kept, progress.agent, header)
        write_log(self.folder / "log.parquet", progress.log, spec)
        return write_checkpoint(self.checkpoint, progress.agent, header)


def _iterate(progress: RunProgress, rollout: Rollout, spec: TrainingSpec, workers: Executor) -> LogRow:
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
    progress.recent.extend(rollout.episodes)
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
