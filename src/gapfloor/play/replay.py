"""Replay: recorded episodes played again, with their frames.

An episode is a pure function of what its cell records, so it can be played alone at any time; its return must
then equal the recorded one, or the replay is refused. The page shows the same level under sampling, argmax and
random play side by side.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.protocol import Engine, EngineSpec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import CheckFailedError, StoreError, UsageError
from gapfloor.levels import LevelSet
from gapfloor.machine import one_torch_thread
from gapfloor.play.actor import Actor, PolicyActor, ReferenceActor
from gapfloor.play.candidate import try_policy
from gapfloor.play.cell import PROTOCOL_VERSION, CellSpec, Inference, Run, design_from
from gapfloor.play.streams import cell_stream_name, episode_stream
from gapfloor.policies.backends import BACKENDS
from gapfloor.policies.load import PolicySource
from gapfloor.policies.references import parse_reference
from gapfloor.records.atomic import write_bytes_atomically, write_text_atomically
from gapfloor.records.store import Store, StoredCell, read_episodes
from gapfloor.rules import Rule, parse_rule

Frames = npt.NDArray[np.uint8]

#: Frames kept of an episode: longer ones are thinned evenly, the last frame always stays.
MOST_FRAMES = 240


@dataclass(frozen=True)
class RecordedEpisode:
    """One episode of a stored cell."""

    cell: StoredCell
    slot: int
    index: int
    level_seed: int
    episode_return: float
    length: int

    @property
    def file_name(self) -> str:
        """Name of the replay's files, without ending."""
        return f"{self.cell.manifest.key[:16]}-{self.slot}-{self.index}"


def recorded_episodes(cell: StoredCell) -> list[RecordedEpisode]:
    """The episodes of a stored cell."""
    rows = read_episodes(cell.path).to_pylist()
    names = ("slot", "index", "level_seed", "episode_return", "length")
    return [RecordedEpisode(cell, *(row[name] for name in names)) for row in rows]


def spec_of(cell: StoredCell) -> CellSpec:
    """The specification that a stored cell was made under."""
    content, labels = cell.manifest.content, cell.manifest.labels
    engine = EngineSpec(
        content["engine"],
        content["engine_version"],
        content["game"],
        content["mode"],
        tuple(sorted(content["options"].items())),
    )
    if content["protocol"] != PROTOCOL_VERSION:
        raise _other_version(cell)
    spec = CellSpec(
        engine=engine,
        run=Run(labels["agent"], labels["seed"], labels["budget"], labels["reference"]),
        policy=content["policy"],
        rule=content["rule"],
        level_set=content["level_set"],
        levels=LevelSet.parse(content["levels"]),
        draw=content["draw"],
        design=design_from(content),
        inference=Inference(**{field.name: content[field.name] for field in dataclasses.fields(Inference)}),
        classes=tuple(content["classes"]),
    )
    if spec.key != cell.manifest.key:
        raise _other_version(cell)
    return spec


def _other_version(cell: StoredCell) -> StoreError:
    return StoreError(f"{cell.path.stem} was made by another version of the harness: it cannot be replayed.")


def replay_episodes(
    episodes: Sequence[RecordedEpisode], *, store: Store, sources: Sequence[PolicySource] = ()
) -> list[Path]:
    """Play `episodes` again and keep their frames in the store; returns the files written.

    Policies are found among `sources` and the store's own runs by their content hash.
    """
    by_cell: dict[str, list[RecordedEpisode]] = {}
    for episode in episodes:
        by_cell.setdefault(episode.cell.manifest.key, []).append(episode)
    written = []
    for group in by_cell.values():
        spec = spec_of(group[0].cell)
        policy = None if spec.is_plain_reference else find_policy(spec, store=store, sources=sources)
        try:
            with one_torch_thread():
                recordings = _play(spec, policy, group)
        except CheckFailedError as error:
            # A locked plan that stops on a failed replay check looks for this file.
            failed = store.root / "replays" / f"{group[0].file_name}.failed"
            write_text_atomically(failed, f"{error}\n")
            raise
        for episode, frames in zip(group, recordings, strict=True):
            written.append(_keep(store, spec, episode, frames))
    return written


def find_policy(spec: CellSpec, *, store: Store, sources: Sequence[PolicySource]) -> Any:
    """The policy with the content that the cell recorded."""
    own = sorted((store.root / "runs").glob("*/checkpoint.safetensors"))
    backend = spec.inference.backend if spec.inference.backend in BACKENDS else None
    for given in [*sources, *(PolicySource(str(path)) for path in own)]:
        source = dataclasses.replace(given, backend=backend)
        policy = source.load()
        batch = spec.inference.batch
        tried = try_policy(policy, name=source.name, engine=spec.engine, batch=batch)
        if tried.fingerprint == spec.policy:
            return policy
    raise UsageError(
        f"The policy of {spec.run.name} on {spec.engine.game} is not among the store's runs: give its checkpoint "
        "with --policy."
    )


def _play(spec: CellSpec, policy: Any, episodes: Sequence[RecordedEpisode]) -> list[Frames]:
    batch = spec.inference.batch or len(episodes)
    recordings: list[Frames] = []
    for start in range(0, len(episodes), batch):
        recordings += _play_batch(spec, policy, episodes[start : start + batch], batch)
    return recordings


def _play_batch(spec: CellSpec, policy: Any, episodes: Sequence[RecordedEpisode], batch: int) -> list[Frames]:
    engine = engine_from_spec(spec.engine, slots=batch, levels=spec.levels)
    actor, rule = _actor(spec, policy, engine.n_actions, engine.noop)
    actor.resize(batch)
    streams = [
        episode_stream(cell_stream_name(spec), slot=episode.slot, index=episode.index) for episode in episodes
    ]
    for row, episode in enumerate(episodes):
        engine.begin(row, episode.level_seed)
    n = len(episodes)
    frames: list[list[Frames]] = [[_frame(engine, spec, row)] for row in range(n)]
    returns, playing = np.zeros(n), np.ones(n, dtype=bool)
    first = np.ones(batch, dtype=bool)
    while playing.any():
        uniforms = np.zeros(batch)
        uniforms[:n] = [stream.random() for stream in streams]
        rules: list[Rule | None] = [rule if row < n and playing[row] else None for row in range(batch)]
        actions = actor.act(engine.observe()[0], first, uniforms, rules)
        _, rewards, firsts = engine.step(actions)
        returns[playing] += rewards[:n][playing]
        playing &= ~firsts[:n]
        for row in np.flatnonzero(playing):
            frames[row].append(_frame(engine, spec, row))
        first = firsts.copy()
    engine.close()
    for episode, again, seen in zip(episodes, returns, frames, strict=True):
        _check(spec, episode, float(again), len(seen))
    return [_thin(np.stack(seen)) for seen in frames]


def _frame(engine: Engine, spec: CellSpec, row: int) -> Frames:
    frame = engine.frame(row)
    if frame is None:
        raise UsageError(
            f"{spec.engine.game} has no picture to keep: it offers neither render_mode rgb_array nor an image as "
            "observation, so its episodes cannot be shown on the page."
        )
    return frame


def _actor(spec: CellSpec, policy: Any, n_actions: int, noop: int) -> tuple[Actor, Rule | None]:
    if policy is None:
        return ReferenceActor(parse_reference(spec.rule), n_actions=n_actions), None
    from gapfloor.actions.partition import Partition

    rule = parse_rule(spec.rule).bind(Partition(spec.classes) if spec.classes else None)
    return PolicyActor(policy, name=spec.run.name, n_actions=n_actions, noop=noop), rule


def _check(spec: CellSpec, episode: RecordedEpisode, again: float, length: int) -> None:
    if (again, length) != (episode.episode_return, episode.length):
        raise CheckFailedError(
            f"Level {episode.level_seed} of {spec.file_name} returned {again:g} in {length} steps, but "
            f"{episode.episode_return:g} in {episode.length} steps is recorded: the replay differs from the "
            "recorded episode."
        )


def _thin(frames: Frames) -> Frames:
    if len(frames) <= MOST_FRAMES:
        return frames
    kept: Frames = frames[np.unique(np.linspace(0, len(frames) - 1, MOST_FRAMES).round().astype(int))]
    return kept


def _keep(store: Store, spec: CellSpec, episode: RecordedEpisode, frames: Frames) -> Path:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, frames=frames)
    path = store.root / "replays" / f"{episode.file_name}.npz"
    sidecar = {
        **episode.cell.manifest.labels,
        "levels": str(spec.levels),
        "slot": episode.slot,
        "index": episode.index,
        "level_seed": episode.level_seed,
        "episode_return": episode.episode_return,
        "length": episode.length,
        "n_frames": len(frames),
        "cell": episode.cell.manifest.key,
    }
    write_bytes_atomically(path, buffer.getvalue())
    write_text_atomically(path.with_suffix(".json"), json.dumps(sidecar, sort_keys=True, indent=1) + "\n")
    return path
