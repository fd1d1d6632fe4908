"""A checkpoint cannot name code: no command imports the module that only the header of a file says to play."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import run
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import write_checkpoint

SHAPE, N_ACTIONS = (16, 16, 3), 15


def write_run(folder: Path, game: str, seed: int) -> None:
    """A sound run whose header names the game."""
    folder.mkdir(parents=True)
    agent = make_agent("impala", observation_shape=SHAPE, n_actions=N_ACTIONS, seed=seed)
    header = {
        "game": game, "mode": "default", "levels": "0:200", "encoder": "impala", "seed": seed, "steps": 4096,
        "observation_shape": list(SHAPE), "n_actions": N_ACTIONS,
    }  # fmt: skip
    write_checkpoint(folder / "checkpoint.safetensors", agent, header)


@pytest.mark.parametrize("game", ["stranger:make", "gym:stranger:Env-v0"])
@pytest.mark.parametrize(
    "words",
    [
        ["cka", "runs/a", "--store", "out"],
    ],
)
def test_a_game_in_a_header_is_not_imported(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    game: str,
    words: list[str],
) -> None:
    (tmp_path / "stranger.py").write_text("open('RAN', 'w').close()\n")
    for seed, name in enumerate(("a", "b")):
        write_run(tmp_path / "runs" / name, game, seed)
    monkeypatch.chdir(tmp_path)
    done = run(capsys, *words)
    assert done.code == 2
    assert not (tmp_path / "RAN").exists()
    assert f"was trained on {game}, and playing that would import and run the code" in done.err
