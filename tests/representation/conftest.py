"""Checkpoints for the real engine: two encoders of one run, untrained, which is enough to move through everything."""

from __future__ import annotations

from pathlib import Path

import pytest


def write_run(folder: Path, *, game: str = "starpilot", encoder: str = "impoola", seed: int = 1) -> Path:
    from gapfloor.training.agent import make_agent
    from gapfloor.training.checkpoint import write_checkpoint

    header = {
        "game": game, "mode": "easy", "levels": "0:200", "encoder": encoder, "seed": seed, "steps": 0, "budget": "8M",
        "budget_steps": 8_000_000, "observation_shape": [64, 64, 3], "n_actions": 15,
    }  # fmt: skip
    run = folder / f"{game}-easy-{encoder}-8M-s{seed}"
    agent = make_agent(encoder, observation_shape=(64, 64, 3), n_actions=15, seed=seed)
    write_checkpoint(run / "checkpoint.safetensors", agent, header)
    return run


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of an impoola and an fpn run of one seed."""
    folder = tmp_path_factory.mktemp("runs")
    return write_run(folder), write_run(folder, encoder="fpn")
