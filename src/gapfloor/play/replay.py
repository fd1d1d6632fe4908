"""Replay: recorded episodes played again, with their frames.

An episode is a pure function of what its cell records, so it can be played alone at any time; its return must
then equal the recorded one, or the replay is refused. The page shows the same level under sampling, argmax and
random play side by side.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import GYMNASIUM, Engine, EngineSpec
from gapfloor.errors import CheckFailedError, PolicyError, StoreError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.machine import one_thread
from gapfloor.play.candidate import try_policy
from gapfloor.play.cell import PROTOCOL_VERSION, CellSpec, Inference, Run, design_from
from gapfloor.play.group import play_cells
from gapfloor.play.player import CellPlay
from gapfloor.policies.backends import BACKENDS
from gapfloor.policies.formats.spec import RANDOM_WEIGHTS, PolicySpec
from gapfloor.policies.load import PolicySource
from gapfloor.records.atomic import write_bytes_atomically, write_text_atomically
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import StoredCell, read_episodes

Frames = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
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


def frame_files(store: Path, episode: RecordedEpisode) -> tuple[Path, Path]:
    """Where a store keeps the frames of an episode, and the facts about it, which are written last."""
    path = store / "replays" / f"{episode.file_name}.npz"
    return path, path.with_suffix(".json")


def recorded_episodes(cell: StoredCell) -> list[RecordedEpisode]:
    """The episodes of a stored cell."""
    rows = read_episodes(cell.path).to_pylist()
    names = ("slot", "index", "level_seed", "episode_return", "length")
    return [RecordedEpisode(cell, *(row[name] for name in names)) for row in rows]


def choose_episodes(
    stored: Iterable[StoredCell],
    *,
    games: Sequence[str] = (),
    level_set: str = "test",
    agent: str | None = None,
    seed: int | None = None,
    level: int | None = None,
    count: int = 2,
) -> list[RecordedEpisode]:
    """Episodes of one run per game under every rule, and of its floor; None accepts any.

    A draw gives every policy and rule the same levels in the same places, so one (draw, slot, index) is one level under
    all of them. By default the places are those where sampling and argmax differ most: a replay is an illustration.
    """
    labelled = [(cell.manifest.labels, cell) for cell in stored]
    labelled = [pair for pair in labelled if pair[0]["level_set"] == level_set]
    wanted = {name: value for name, value in (("agent", agent), ("seed", seed)) if value is not None}
    chosen: list[RecordedEpisode] = []
    for game in games or dict.fromkeys(labels["game"] for labels, _ in labelled):
        here = [(labels, cell) for labels, cell in labelled if labels["game"] == game]
        runs = [pair for pair in here if not pair[0]["reference"] and wanted.items() <= pair[0].items()]
        if not runs:
            raise UsageError(
                f"The store has no {level_set} cells of a matching run on {game}: evaluate one first."
            )
        order = ("agent", "seed", "draw")
        labels, first = min(
            runs, key=lambda pair: [(pair[0][name] is not None, pair[0][name]) for name in order]
        )
        run = RunIdentity.from_labels(labels)
        mine = [cell for labels, cell in runs if RunIdentity.from_labels(labels) == run]
        floors = [cell for labels, cell in here if labels["reference"] == "uniform"]
        parts = ("slots", "burn_in", "episodes", "levels", "draw")
        episodes = {
            cell.manifest.labels["rule"]: recorded_episodes(cell)
            for cell in [*mine, *floors]
            if all(cell.manifest.content[part] == first.manifest.content[part] for part in parts)
        }
        places = _places(episodes, level=level, count=count)
        chosen += [rows[place] for rows in episodes.values() for place in places]
    return chosen


def _places(episodes: dict[str, list[RecordedEpisode]], *, level: int | None, count: int) -> list[int]:
    """Positions in the schedule: that of a named level, or where sampled and greedy differ most."""
    levels = [row.level_seed for row in next(iter(episodes.values()))]
    if level is not None:
        if level not in levels:
            raise UsageError(
                f"Level {level} is not in this draw: choose a level of one of its {len(levels)} episodes."
            )
        return [levels.index(level)]
    contrast = [0.0] * len(levels)
    if {"sampled", "greedy"} <= set(episodes):
        pairs = zip(episodes["sampled"], episodes["greedy"], strict=True)
        contrast = [sampled.episode_return - greedy.episode_return for sampled, greedy in pairs]
    first_of: dict[int, int] = {}
    for place in sorted(range(len(levels)), key=lambda place: -contrast[place]):
        first_of.setdefault(levels[place], place)
    return sorted(list(first_of.values())[:count])


def spec_of(cell: StoredCell) -> CellSpec:
    """The specification that a stored cell was made under."""
    content, labels = cell.manifest.content, cell.manifest.labels
    if content["protocol"] == PROTOCOL_VERSION:
        engine = EngineSpec(
            content["engine"], content["engine_version"], content["game"], content["mode"],
            tuple(sorted(content["options"].items())),
        )  # fmt: skip
        spec = CellSpec(
            engine=engine,
            run=Run(labels["agent"], labels["seed"], labels["budget"], labels["reference"]),
            policy=content["policy"],
            rule=content["rule"],
            level_set=content["level_set"],
            levels=LevelSet.parse(content["levels"]),
            draw=content["draw"],
            design=design_from(content),
            inference=Inference(
                **{field.name: content[field.name] for field in dataclasses.fields(Inference)}
            ),
            classes=tuple(content["classes"]),
        )
        if spec.key == cell.manifest.key:
            return spec
    raise StoreError(f"{cell.path.stem} was made by another version of the harness: it cannot be replayed.")


def code_names(engine: EngineSpec) -> list[str]:
    """The user's own code that makes an environment: `package.module:function`, packages to import, wrappers."""
    if engine.engine != GYMNASIUM.name:
        return []
    wrappers = str(dict(engine.options).get("wrapper", "")).split(",")
    return [name for name in (engine.game, *wrappers) if ":" in name]


def refuse_unnamed_code(engine: EngineSpec, *, allowed: Collection[str]) -> None:
    """Refuse to import what only a store names: the store may come from somebody else."""
    for name in code_names(engine):
        if name not in allowed:
            raise UsageError(
                f"The store says that its environment is made by {name}, and playing it would import and run that "
                f"code: if you trust it, add --allow {name}."
            )


def replay_episodes(
    episodes: Sequence[RecordedEpisode],
    *,
    store: Store,
    sources: Sequence[PolicySource] = (),
    allowed: Collection[str] = (),
) -> list[Path]:
    """Play `episodes` again and keep their frames in the store; returns the files written.

    Policies are found among `sources` and the store's own runs by their content hash. `allowed` names the user's own
    code that environments may be made by.
    """
    for episode in episodes:
        refuse_unnamed_code(spec_of(episode.cell).engine, allowed=allowed)
    by_cell: dict[str, list[RecordedEpisode]] = {}
    for episode in episodes:
        by_cell.setdefault(episode.cell.manifest.key, []).append(episode)
    written = []
    for group in by_cell.values():
        spec, watcher = spec_of(group[0].cell), _Watcher(keeps_frames=True)
        policy = None
        if not spec.is_plain_reference:
            _, policy = find_policy(spec, store=store, sources=sources)
        try:
            outcomes = play_again(spec, policy, group, watcher=watcher)
            for episode, (again, length) in zip(group, outcomes, strict=True):
                if (again, length) != (episode.episode_return, episode.length):
                    raise CheckFailedError(
                        f"{difference(episode, again, length)}: the replay differs from the recorded episode."
                    )
        except CheckFailedError as error:
            # A locked plan that stops on a failed replay check looks for this file.
            failed = store.root / "replays" / f"{group[0].file_name}.failed"
            write_text_atomically(failed, f"{error}\n")
            raise
        for episode in group:
            frames = np.stack(watcher.frames[episode.slot, episode.index])
            written.append(_keep(store, spec, episode, frames))
    return written


def find_policy(spec: CellSpec, *, store: Store, sources: Sequence[PolicySource]) -> tuple[PolicySource, Any]:
    """The policy that has the content which the cell recorded, and where it comes from."""
    backend = spec.inference.backend if spec.inference.backend in BACKENDS else None
    # Untrained networks need no file, and the store's runs are looked at last, the cell's own first. The store never
    # says where else to look: a name in somebody's store must not decide which code is imported.
    if spec.run.reference.startswith(RANDOM_WEIGHTS):
        name = f"{spec.run.reference}:{spec.run.seed}"
        own = [PolicySource(name, spec=PolicySpec(RANDOM_WEIGHTS, Path(name)))]
    else:
        paths = sorted((store.root / "runs").glob("*/checkpoint.safetensors"))
        paths.sort(key=lambda path: path.parent.name != RunIdentity.from_labels(spec.labels).name)
        own = [PolicySource.named(path) for path in paths]
    for given in [*sources, *own]:
        source = dataclasses.replace(given, backend=backend)
        try:
            tried = try_policy(source, engine=spec.engine, batch=spec.inference.batch)
        except PolicyError:
            continue  # the policy of another game, which cannot read this one
        if tried.fingerprint == spec.policy:
            if tried.inference != spec.inference:
                raise PolicyError(
                    f"{source.name} computes other logits here ({tried.inference}) than where {spec.run.name} was "
                    f"recorded ({spec.inference}): use a machine and versions of that kind."
                )
            return tried.source, tried.policy
    raise UsageError(
        f"The policy of {spec.run.name} on {spec.engine.game} is not among the store's runs: give its checkpoint "
        "with --policy."
    )


class _Watcher:
    """Has episodes played in full, without any shortcut, and keeps their frames where it is asked to."""

    def __init__(self, *, keeps_frames: bool) -> None:
        self.keeps_frames = keeps_frames
        self.frames: dict[tuple[int, int], list[Frames]] = {}
        """By slot and index."""

    def wants(self, slot: Integers, index: Integers, step: Integers) -> npt.NDArray[np.bool_]:
        return np.full(len(slot), self.keeps_frames)

    def see(
        self, engine: Engine, row: int, *, slot: int, index: int, step: int, probabilities: object
    ) -> None:
        frame = engine.frame(row)
        if frame is None:
            raise UsageError(
                "This environment has no picture to keep: it offers neither render_mode rgb_array nor an image as "
                "observation, so its episodes cannot be shown on the page."
            )
        self.frames.setdefault((slot, index), []).append(frame)

    def finish(self) -> dict[str, Any]:
        return {}


def play_again(
    spec: CellSpec, policy: Any, episodes: Sequence[RecordedEpisode], *, watcher: _Watcher | None = None
) -> list[tuple[float, int]]:
    """Play episodes of one cell again; the return and the length of each. `policy` is None for a plain reference."""
    places = {row: place for place, row in enumerate(spec.schedule())}
    try:
        wanted = [places[each.slot, each.index, each.level_seed] for each in episodes]
    except KeyError:
        raise CheckFailedError(
            f"{episodes[0].cell.path.stem} names levels that are not those of its draw: a replay differs from the "
            "recorded episode."
        ) from None
    play = CellPlay(spec, watcher or _Watcher(keeps_frames=False), wanted)
    with one_thread():
        for _ in play_cells(iter([play]), cell=spec, policy=policy, name=spec.run.name, has_pictures=True):
            pass
    return [(play.outcomes[place].episode_return, play.outcomes[place].length) for place in wanted]


def difference(episode: RecordedEpisode, again: float, length: int) -> str:
    """What is recorded about an episode and what happened when it was played again."""
    return (
        f"Level {episode.level_seed} of {episode.cell.path.stem} returned {again:g} in {length} steps, but "
        f"{episode.episode_return:g} in {episode.length} steps is recorded"
    )


def _keep(store: Store, spec: CellSpec, episode: RecordedEpisode, frames: Frames) -> Path:
    if len(frames) > MOST_FRAMES:
        frames = frames[np.unique(np.linspace(0, len(frames) - 1, MOST_FRAMES).round().astype(int))]
    buffer = io.BytesIO()
    np.savez_compressed(buffer, frames=frames)
    path, facts = frame_files(store.root, episode)
    names = ("slot", "index", "level_seed", "episode_return", "length")
    sidecar = {
        **episode.cell.manifest.labels,
        **{name: getattr(episode, name) for name in names},
        "levels": str(spec.levels),
        "n_frames": len(frames),
        "cell": episode.cell.manifest.key,
    }
    write_bytes_atomically(path, buffer.getvalue())
    write_text_atomically(facts, json.dumps(sidecar, sort_keys=True, indent=1) + "\n")
    return path
