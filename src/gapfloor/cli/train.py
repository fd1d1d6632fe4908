"""`gapfloor train`: one agent, resumed by the same command."""

from __future__ import annotations

from typing import Any

import click

from gapfloor.cli.options import expand_store, print_json
from gapfloor.records.store import DEFAULT_STORE
from gapfloor.training.encoders import encoder_names
from gapfloor.training.hyperparameters import PRECISIONS, REWARD_MODES, Hyperparameters

_DEFAULTS = Hyperparameters()


@click.command(name="train")
@click.argument("game")
@click.option("--encoder", default="impala", show_default=True, help=f"One of {', '.join(encoder_names())}.")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Seed of weights, levels, actions and batches."
)
@click.option(
    "--steps", type=int, default=8_000_000, show_default=True, help="Total number of environment steps."
)
@click.option(
    "--envs", type=int, default=_DEFAULTS.environments, show_default=True, help="Parallel environments."
)
@click.option("--train", default="0:200", show_default=True, help="Training levels, START:STOP or all.")
@click.option("--mode", default="easy", show_default=True, help="ProcGen's distribution mode.")
@click.option("--budget", default="", help="Label of the budget in the run's name.  [default: from --steps]")
@click.option(
    "--rewards", type=click.Choice(REWARD_MODES), default="raw", show_default=True,
    help="Rewards as the game gives them, or normalised and clipped as in CleanRL.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(PRECISIONS), default="float32", show_default=True,
    help="Arithmetic of the network. bf16 is faster where the processor has it and gives other weights.",
)  # fmt: skip
@click.option("--blind", is_flag=True, help="Train on black images: a reference for gapfloor evaluate.")
@click.option(
    "--threads",
    type=int,
    default=None,
    help="Number of threads; does not change results.  [default: all cores]",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Device for the network.",
)
@click.option(
    "--checkpoint-every", type=int, default=0, help="Keep a checkpoint in history/ every N updates."
)
@click.option("--no-tensorboard", is_flag=True, help="Do not write TensorBoard files.")
@click.option("--store", "--out", "store", default=DEFAULT_STORE, show_default=True, envvar="GAPFLOOR_STORE",
              callback=expand_store, help="Folder that holds the runs.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(game: str, as_json: bool, no_tensorboard: bool, **settings: Any) -> None:
    r"""Train an agent on GAME with PPO; run the same command again to resume.

    \b
    Examples:
      gapfloor train starpilot --encoder impala --seed 1 --steps 8000000
      gapfloor train starpilot --steps 100000 --checkpoint-every 4
      gapfloor train starpilot --blind --steps 100000
    """
    from gapfloor.api.train import train

    result = train(game, tensorboard=not no_tensorboard, progress=not as_json, **settings)
    if as_json:
        print_json(result.to_dict())
        return
    click.echo(result)
    if result.updates_done_here:
        click.echo(
            f"Next: gapfloor evaluate {result.checkpoint.parent} --game {game} --rules sampled,greedy "
            f"--store {settings['store']}"
        )
