"""Play recorded episodes again and keep their frames in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.api.keyword_settings import names_of
from gapfloor.errors import UsageError
from gapfloor.play.replay import RecordedEpisode, choose_episodes, replay_episodes
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store
from gapfloor.tables.readable import ReadableResult


@dataclass(frozen=True, repr=False)
class Replays(ReadableResult):
    """Episodes that were played again, and the files of their frames."""

    row_names = ("episodes",)

    episodes: tuple[RecordedEpisode, ...]
    """The episodes; each replay gave the recorded return."""
    written: tuple[Path, ...]
    """The files of their frames."""

    def to_dict(self) -> dict[str, Any]:
        """The episodes, and the files of their frames below the store."""
        return {
            "episodes": [
                {
                    **{name: episode.cell.manifest.labels[name] for name in ("game", "agent", "rule", "level_set")},
                    "level_seed": episode.level_seed, "episode_return": episode.episode_return,
                    "length": episode.length,
                }
                for episode in self.episodes
            ],
            "replays": [f"{path.parent.name}/{path.name}" for path in self.written],
        }  # fmt: skip

    def sentences(self) -> list[str]:
        """Each episode with its return."""
        return [
            f"{episode.cell.manifest.labels['game']} level {episode.level_seed} "
            f"{episode.cell.manifest.labels['rule']}: return {episode.episode_return:g} in {episode.length} steps, "
            "as recorded."
            for episode in self.episodes
        ]


def replay(
    store: str | Path | Store,
    *,
    games: str | Sequence[str] = (),
    level_set: str = "test",
    agent: str | None = None,
    seed: int | None = None,
    level: int | None = None,
    count: int = 2,
    policies: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> Replays:
    """Play recorded episodes of a store again, under every rule and the floor, and keep their frames in it.

    The return of every replay must equal the recorded one. The page of `report` shows the frames.

    Args:
        store: The store that holds the cells; frames are written below `replays/`.
        games: Games of the store (default: all).
        level_set: The level set of the episodes: train or test.
        agent: The agent whose episodes are replayed (default: the first).
        seed: The seed of its run (default: the first).
        level: The level (default: where sampled and greedy differ most).
        count: Number of levels per game.
        policies: Policy of a run that is not in the store, e.g. sb3:ppo-1.zip.
        allow: Code that the store names and that may be imported, e.g. mine.envs:make; `games` are allowed too.

    Returns:
        The episodes with their returns, and the files of their frames.

    Command line:
        gapfloor replay gapfloor-store --games starpilot
        gapfloor replay gapfloor-store --games miner --level 1017 --agent impala --seed 2

    Examples:
        An untrained network and the floor on one level of starpilot, recorded and then played again:

        >>> import gapfloor, tempfile
        >>> folder, policy = tempfile.mkdtemp(), "random-weights:impala:1"
        >>> result = gapfloor.evaluate(
        ...     policy, game="starpilot", rules="greedy", design="census", train="none", test="1000:1002",
        ...     store=folder, progress=False,
        ... )
        >>> replays = gapfloor.Store(folder).replay(level=1001, policies=[policy])
        >>> [(row["rule"], row["level_seed"]) for row in replays.to_dict()["episodes"]]
        [('greedy', 1001), ('uniform', 1001)]
    """
    if count < 1:
        raise UsageError(f"count is {count}: use at least 1.")
    named = names_of(games)
    opened = store if isinstance(store, Store) else Store(store)
    opened.check_readable()
    episodes = choose_episodes(
        opened.cells(), games=named, level_set=level_set, agent=agent, seed=seed, level=level, count=count
    )
    sources = [PolicySource.named(name) for name in policies]
    paths = replay_episodes(episodes, store=opened, sources=sources, allowed=(*allow, *named))
    return Replays(tuple(episodes), tuple(paths))
