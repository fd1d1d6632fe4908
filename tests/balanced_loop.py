"""The plain balanced loop: play without any shortcut, to check the player against.

It plays a seeded draw as ProcGen itself would: one engine with the cell's own slots, each episode follows the
one before it, burn-in episodes included, and every slot is stepped until each has played its quota.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gapfloor.engines.engine import Engine
from gapfloor.errors import StoreError
from gapfloor.play.actor import Actor, Turn
from gapfloor.play.cell import EpisodeOutcome, episode_stream
from gapfloor.play.player import CellPlay
from gapfloor.rules.rule import Rule


def play_plainly(
    play: CellPlay, *, engine: Engine, actor: Actor, batch: int | None = None
) -> list[EpisodeOutcome]:
    """Play one cell on `engine`, which must be fresh, made with the cell's level set and draw.

    `batch` pads the observations to a fixed inference shape, as the player's slots do.
    """
    design = play.spec.design
    n, space = design.slots, engine.action_space
    batch = batch or n
    actor.resize(batch)
    quota = design.burn_in + design.episodes // n
    expected = {(slot, index): (place, level) for place, (slot, index, level) in enumerate(play.schedule)}
    outcomes: dict[int, EpisodeOutcome] = {}
    index = np.zeros(n, dtype=np.int64)
    streams = [episode_stream(play.spec.stream_name, slot=slot, index=0) for slot in range(n)]
    steps: list[list[tuple[Any, ...]]] = [[] for _ in range(n)]
    """Of each slot's episode: reward, action as it is counted, and what the actor measured."""
    rules: list[Rule | None] = [play.rule] * n + [None] * (batch - n)
    first = np.ones(batch, dtype=bool)
    while (index < quota).any():
        observations, _, _ = engine.observe()
        padded = np.concatenate(
            [observations, np.zeros((batch - n, *observations.shape[1:]), observations.dtype)]
        )
        uniforms = np.zeros((batch, space.width) if space.width else batch)
        uniforms[:n] = [stream.random(space.width or None) for stream in streams]
        masks = engine.masks
        if masks is not None:
            masks = np.concatenate([masks, np.ones((batch - n, masks.shape[1]), dtype=bool)])
        actions = actor.act(Turn(padded, first, uniforms, rules, masks))[:n]
        tallies = space.tallies(actions)
        levels = engine.level_seeds.copy()
        _, rewards, firsts = engine.step(actions)
        measured = (actor.entropies, actor.disagreements, actor.played_entropies)
        for slot in range(n):
            seen = (None if each is None else each[slot] for each in measured)
            steps[slot].append((float(rewards[slot]), tallies[slot], *seen))
            if not firsts[slot]:
                continue
            counted = expected.get((slot, int(index[slot])))
            if counted is not None:
                position, level = counted
                if levels[slot] != level:
                    raise StoreError(f"Slot {slot} played level {levels[slot]} where {level} was scheduled.")
                outcomes[position] = _outcome(steps[slot])
            index[slot] += 1
            steps[slot] = []
            streams[slot] = episode_stream(play.spec.stream_name, slot=slot, index=int(index[slot]))
        first = np.concatenate([firsts, np.zeros(batch - n, dtype=bool)])
    return [outcomes[position] for position in range(len(play.schedule))]


def _outcome(steps: list[tuple[Any, ...]]) -> EpisodeOutcome:
    """The outcome of an episode: sums are taken in the order of its steps."""
    rewards, actions, entropies, disagreements, played = map(np.array, zip(*steps, strict=True))
    return EpisodeOutcome(
        episode_return=float(np.add.accumulate(rewards)[-1]),
        length=len(steps),
        action_counts=np.add.accumulate(actions)[-1],
        entropies=entropies if entropies[0] is not None else None,
        disagreements=int(disagreements.sum()) if disagreements[0] is not None else None,
        played_entropy=float(np.add.accumulate(played)[-1]) if played[0] is not None else None,
    )
