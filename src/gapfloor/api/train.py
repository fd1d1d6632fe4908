"""Train an agent with PPO, or resume it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gapfloor.api.progress import TrainingProgress, is_watched
from gapfloor.errors import MissingExtraError
from gapfloor.levels.schedule import LevelSet
from gapfloor.machine import available_cores
from gapfloor.records.store import DEFAULT_STORE
from gapfloor.training.spec import Hyperparameters, TrainingSpec

if TYPE_CHECKING:
    from gapfloor.training.trainer import Tick, TrainingResult


def train(
    game: str,
    *,
    encoder: str = "impala",
    seed: int = 1,
    steps: int = 8_000_000,
    envs: int = Hyperparameters.environments,
    train: str | range = "0:200",
    mode: str = "easy",
    budget: str = "",
    entropy_coefficient: float = Hyperparameters.entropy_coefficient,
    precision: Literal["float32", "bf16"] = "float32",
    blind: bool = False,
    threads: int | None = None,
    device: Literal["cpu", "cuda"] = "cpu",
    checkpoint_every: int = 0,
    store: str | Path = DEFAULT_STORE,
    progress: Callable[[Tick], None] | bool | None = None,
) -> TrainingResult:
    """Train an agent with PPO, or resume its training where it stopped.

    PPO with the paper's hyperparameters. After every update the run can be stopped; a resumed run ends with the same
    bytes as one that was never stopped, on any number of threads.

    Args:
        game: A game of ProcGen.
        encoder: The network, impala or fpn; the error for an unknown one lists them.
        seed: Seed of weights, levels, actions and batches.
        steps: Total number of environment steps.
        envs: Parallel environments.
        train: Training levels: START:STOP, a `range` or all.
        mode: ProcGen's distribution mode.
        budget: Label of the training budget, e.g. 8M (default: made from `steps`).
        entropy_coefficient: Weight of the entropy bonus. It is not in the name of a run: use one store per weight.
        precision: Arithmetic of the network. bf16 gives other weights; processors that have it train 1.4 times as fast.
        blind: Train on black images: a reference for `evaluate`.
        threads: Number of threads, which changes no result (default: all cores).
        device: Device for the network. On cuda a run is not repeated byte for byte.
        checkpoint_every: Keep a checkpoint every N updates, for a training curve; 0: none.
        store: Folder that holds the runs.
        progress: Called after every update. None: a line on a terminal or in a notebook; False:
            nothing.

    Returns:
        The run's name, checkpoint and number of steps.

    Command line:
        gapfloor train starpilot --encoder impala --seed 1 --steps 8000000
        gapfloor train starpilot --steps 100000 --checkpoint-every 4
        gapfloor train starpilot --blind --steps 100000

    Examples:
        One update on one game takes a few seconds; a useful agent needs millions of steps:

        >>> import gapfloor, tempfile
        >>> run = gapfloor.train(
        ...     "starpilot", steps=512, envs=2, store=tempfile.mkdtemp(), progress=False
        ... )
        >>> run.run, run.steps, run.checkpoint.name
        ('starpilot-easy-impala-512-s1', 512, 'checkpoint.safetensors')
    """
    try:
        import safetensors  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f'Training needs {error.name}: pip install "gapfloor[train]".') from None
    from gapfloor.training import trainer

    spec = TrainingSpec(
        game=game, encoder=encoder, seed=seed, steps=steps, mode=mode, levels=LevelSet.parse(train), budget=budget,
        hyperparameters=Hyperparameters(
            environments=envs, entropy_coefficient=entropy_coefficient, precision=precision
        ),
        is_blind=blind,
    )  # fmt: skip
    is_shown = is_watched() if progress is None else progress is True
    with contextlib.closing(TrainingProgress(spec)) as shown:
        return trainer.train(
            spec, store=Path(store), threads=available_cores() if threads is None else threads, device=device,
            checkpoint_every=checkpoint_every,
            observe=progress if callable(progress) else shown.show if is_shown else None,
        )  # fmt: skip
