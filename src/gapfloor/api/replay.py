"""Play recorded episodes again and keep their frames in the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gapfloor.play.replay import RecordedEpisode, replay_episodes
from gapfloor.play.replay_choice import ReplayRequest, choose_episodes
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store


@dataclass(frozen=True)
class Replays:
    """Episodes that were played again, and the files of their frames."""

    episodes: tuple[RecordedEpisode, ...]
    paths: tuple[Path, ...]


def replay(
    store: str | Path,
    *,
    games: Sequence[str] = (),
    level_set: str = "test",
    agent: str | None = None,
    seed: int | None = None,
    level: int | None = None,
    count: int = 2,
    policies: Sequence[str] = (),
    allowed: Sequence[str] = (),
) -> Replays:
    """Play episodes of a store again, under every rule and the floor; each return must equal the recorded one.

    Args:
        store: the store that holds the cells; frames are written below `replays/`.
        games: empty for all games.
        level_set: train or test.
        agent: whose episodes; None: the first agent.
        seed: which of its runs; None: the first.
        level: the level; None: where sampled and greedy differ most.
        count: number of levels per game.
        policies: checkpoints or factories of runs that are not in the store.
        allowed: code of yours that makes the store's environments, e.g. `mine.envs:make`; `games` are allowed too.
    """
    opened = Store(store)
    opened.check_readable()
    request = ReplayRequest(tuple(games), level_set, agent, seed, level, count)
    episodes = choose_episodes(opened, request)
    sources = [PolicySource(name) for name in policies]
    paths = replay_episodes(episodes, store=opened, sources=sources, allowed=(*allowed, *games))
    return Replays(tuple(episodes), tuple(paths))
