"""A run of seconds on the real engine, as a script: `python small_run.py STORE THREADS [KILL_AFTER_UPDATE]`.

The tests start it in processes of its own, so that it can be killed with signal 9.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from gapfloor.training.spec import Hyperparameters, TrainingSpec
from gapfloor.training.trainer import Tick, TrainingResult, train

SMALL = {"environments": 4, "rollout_length": 16, "minibatches": 2, "epochs": 1, "micro_batch": 16}


def small_spec(
    *, game: str = "starpilot", encoder: str = "impoola", seed: int = 1, updates: int = 5, **changes: object
) -> TrainingSpec:
    hyper = Hyperparameters(**(SMALL | changes))  # type: ignore[arg-type]
    return TrainingSpec(
        game=game, encoder=encoder, seed=seed, steps=updates * hyper.batch, hyperparameters=hyper
    )


def train_small(store: Path, *, spec: TrainingSpec | None = None, **options: object) -> TrainingResult:
    return train(spec or small_spec(), store=store, **options)  # type: ignore[arg-type]


def main() -> None:
    store, threads = Path(sys.argv[1]), int(sys.argv[2])
    kill_after = int(sys.argv[3]) if len(sys.argv) > 3 else 0

    def observe(tick: Tick) -> None:
        sys.stdout.write(f"{tick.row.iteration}\n")
        sys.stdout.flush()
        if tick.row.iteration == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    # Dodgeball is the game whose slots remember most.
    spec = small_spec(game="dodgeball", encoder="fpn")
    train_small(store, spec=spec, threads=threads, observe=observe)


if __name__ == "__main__":
    main()
