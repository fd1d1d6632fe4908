"""`gapfloor replay`: play recorded episodes again and keep their frames."""

from __future__ import annotations

import click

from gapfloor.cli.options import json_option, print_json


@click.command()
@click.argument("store", type=click.Path())
@click.option("--game", "games", multiple=True, help="A game of the store; may be repeated. Default: all.")
@click.option("--level-set", type=click.Choice(["train", "test"]), default="test", show_default=True)
@click.option("--agent", default=None, help="Whose episodes; default: the first agent.")
@click.option("--seed", type=int, default=None, help="Which of its runs; default: the first.")
@click.option(
    "--level", type=int, default=None, help="This level; default: where sampled and greedy differ most."
)
@click.option("--count", type=click.IntRange(min=1), default=2, show_default=True, help="Levels a game.")
@click.option(
    "--policy", "policies", multiple=True, help="Checkpoint or factory of a run that is not in the store."
)
@json_option
def command(
    store: str,
    games: tuple[str, ...],
    level_set: str,
    agent: str | None,
    seed: int | None,
    level: int | None,
    count: int,
    policies: tuple[str, ...],
    as_json: bool,
) -> None:
    r"""Play recorded episodes of STORE again, under every rule and the floor, and keep their frames in it.

    The return of every replay must equal the recorded one. The page of `gapfloor report` shows the frames.

    \b
    Examples:
      gapfloor replay gapfloor-store --game starpilot
      gapfloor replay gapfloor-store --game miner --level 1017 --agent impala --seed 2
    """
    from gapfloor.play.replay import replay
    from gapfloor.play.replay_choice import Wanted, choose_episodes
    from gapfloor.policies.load import PolicySource
    from gapfloor.records.store import Store

    opened = Store(store)
    opened.check_readable()
    episodes = choose_episodes(opened, Wanted(games, level_set, agent, seed, level, count))
    paths = replay(episodes, store=opened, sources=[PolicySource(name) for name in policies])
    if as_json:
        print_json({"replays": [str(path.relative_to(opened.root)) for path in paths]})
        return
    for episode in episodes:
        labels = episode.cell.manifest.labels
        click.echo(
            f"{labels['game']} level {episode.level_seed} {labels['rule']}: return {episode.episode_return:g} in "
            f"{episode.length} steps, as recorded."
        )
    click.echo(f"{len(paths)} replays in {opened.root / 'replays'}.")
