"""Play recorded episodes again and keep their frames in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.play.replay import RecordedEpisode, replay_episodes
from gapfloor.play.replay_choice import ReplayRequest, choose_episodes
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store
from gapfloor.text_tables import ReadableResult, TextTable


@dataclass(frozen=True, repr=False)
class Replays(ReadableResult):
    """Episodes that were played again, and the files of their frames."""

    row_names = ("episodes",)

    episodes: tuple[RecordedEpisode, ...]
    """The episodes; each replay gave the recorded return."""
    paths: tuple[Path, ...]
    """The files of their frames."""

    def to_dict(self) -> dict[str, Any]:
        """The episodes, and the files of their frames."""
        return {
            "episodes": [
                {
                    **{name: episode.cell.manifest.labels[name] for name in ("game", "agent", "rule", "level_set")},
                    "level_seed": episode.level_seed, "episode_return": episode.episode_return,
                    "length": episode.length,
                }
                for episode in self.episodes
            ],
            "paths": [str(path) for path in self.paths],
        }  # fmt: skip

    def tables(self) -> list[TextTable]:
        """None: each episode is a sentence."""
        return []

    def sentences(self) -> list[str]:
        """Each episode with its return."""
        return [
            f"{episode.cell.manifest.labels['game']} level {episode.level_seed} "
            f"{episode.cell.manifest.labels['rule']}: return {episode.episode_return:g} in {episode.length} steps, "
            "as recorded."
            for episode in self.episodes
        ]


def replay(
    store: str | Path,
    *,
    games: str | Sequence[str] = (),
    level_set: str = "test",
    agent: str | None = None,
    seed: int | None = None,
    level: int | None = None,
    count: int = 2,
    policies: Sequence[str] = (),
    allowed: Sequence[str] = (),
) -> Replays:
    """Recorded episodes played again with their frames, under every rule and the floor.

    The return of every replay must equal the recorded one. The page of `write_report` shows the frames.

    Args:
        store: The store that holds the cells; frames are written below `replays/`.
        games: Games of the store; empty: all.
        level_set: train or test.
        agent: The agent whose episodes are replayed; None: the first.
        seed: The seed of its run; None: the first.
        level: The level; None: where sampled and greedy differ most.
        count: Number of levels per game.
        policies: Checkpoints or factories of runs that are not in the store.
        allowed: Code of yours that makes the store's environments, e.g. `mine.envs:make`; `games` are allowed too.

    Returns:
        The episodes with their returns, and the files of their frames.

    Examples:
        An untrained network and the floor on one level of starpilot, recorded and then played again:

        >>> import gapfloor, tempfile
        >>> folder, policy = tempfile.mkdtemp(), "random-weights:impala:1"
        >>> result = gapfloor.evaluate(
        ...     policy, game="starpilot", rules="greedy", design="census", train="none", test="1000:1002",
        ...     store=folder, progress=False,
        ... )
        >>> replays = gapfloor.replay(folder, level=1001, policies=[policy])
        >>> [(row["rule"], row["level_seed"]) for row in replays.to_dict()["episodes"]]
        [('greedy', 1001), ('uniform', 1001)]
    """
    named = [games] if isinstance(games, str) else games
    opened = Store(store)
    opened.check_readable()
    request = ReplayRequest(tuple(named), level_set, agent, seed, level, count)
    episodes = choose_episodes(opened, request)
    sources = [PolicySource.named(name) for name in policies]
    paths = replay_episodes(episodes, store=opened, sources=sources, allowed=(*allowed, *named))
    return Replays(tuple(episodes), tuple(paths))
