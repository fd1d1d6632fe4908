"""Verify a store: keys, hashes, schedules, and a sample of episodes and of whole cells played again on the engine.

A hash shows damage, not forgery: whoever edits a return can hash the file again. A replay shows forgery, because an
episode is a pure function of what its cell records.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gapfloor
from gapfloor.api.progress import step_teller
from gapfloor.calibration.classes import load_classes
from gapfloor.calibration.probe import ProbeSettings
from gapfloor.errors import GapfloorError, UsageError, shortened
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.candidate import action_space_of
from gapfloor.play.cell import CellSpec, design_from
from gapfloor.play.group import CellGroup, finished_record, play_group
from gapfloor.play.player import CellPlay
from gapfloor.play.replay import (
    difference,
    find_policy,
    play_again,
    recorded_episodes,
    refuse_unnamed_code,
    spec_of,
)
from gapfloor.policies.load import PolicySource
from gapfloor.policies.references import parse_reference
from gapfloor.records.dataset import store_of
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import StoredCell, read_episodes
from gapfloor.records.verification import DEFAULT_EPISODES, StoreVerification, write_verification
from gapfloor.tables.cells import counted


class _Replayable(NamedTuple):
    """A cell whose episodes can be played again here."""

    cell: StoredCell
    spec: CellSpec
    source: PolicySource | None
    """Its policy; None for a reference."""


def verify(
    store: str | Path | Store,
    *,
    episodes: int = DEFAULT_EPISODES,
    whole_cells: int = 1,
    seed: int | None = None,
    policies: Sequence[str] = (),
    allow: Sequence[str] = (),
    progress: Callable[[str], None] | bool | None = None,
) -> StoreVerification:
    """Check every cell of a store, and play a random sample of its episodes again.

    Keys, hashes, labels and schedules of all cells are checked. Returns and lengths of the sample must be the recorded
    ones. For cells that are played completely, entropies, action counts and disagreement are compared too. The result
    is kept in the store: the card and the page of `report` say what was verified.

    Args:
        store: The store.
        episodes: Number of episodes to play again; 0: none.
        whole_cells: Number of cells to play completely, to compute entropies and action counts again; cells of policies
            come first, because references have no entropies.
        seed: Seed of the sample (default: a new one, so that a forger cannot know what will be played).
        policies: Policy of a run that is not in the store, e.g. sb3:ppo-1.zip.
        allow: Code that the store names and that may be imported, e.g. mine.envs:make.
        progress: Called with words about what is played again. None: a line per step on a terminal or in a notebook;
            False: nothing.

    Returns:
        What was checked, and every problem in words; `is_sound` says whether there are none.

    Command line:
        gapfloor verify gapfloor-store
        gapfloor verify gapfloor-store --episodes 500 --policy sb3:ppo-1.zip

    Examples:
        >>> import gapfloor, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> floor = gapfloor.floor("maze", draws=0, episodes=16, store=folder, progress=False)
        >>> found = gapfloor.Store(folder).verify(episodes=4)
        >>> found.is_sound, found.replayed
        (True, 4)
    """
    for name, number in (("episodes", episodes), ("whole_cells", whole_cells)):
        if number < 0:
            raise UsageError(f"{name} is {number}: use 0 or more.")
    seed = secrets.randbelow(2**32) if seed is None else seed
    opened = store if isinstance(store, Store) else Store(store_of(Path(store)))
    opened.check_readable()
    cells = opened.cells()
    if not cells and not opened.damaged:
        raise UsageError(f"{store} holds no cells: there is nothing to verify.")
    problems = [f"{path.stem}: {why}" for path, why in opened.damaged.items()]
    found = {cell.path.stem: cell_problems(cell) for cell in cells}
    problems += [f"{name}: {each}" for name, mine in found.items() for each in mine]
    replayable: list[_Replayable] = []
    reasons: Counter[str] = Counter()
    if episodes or whole_cells:
        sources = [PolicySource.named(name) for name in policies]
        sound = [cell for cell in cells if not found[cell.path.stem]]
        replayable, reasons = _replayable(sound, opened, sources, allow)
    sample = _sample(replayable, episodes, seed)
    n_episodes, n_cells = sum(map(len, sample)), sum(map(bool, sample))
    tell = step_teller(progress)
    differences = []
    if n_cells:
        tell(f"playing {counted(n_episodes, 'episode')} of {counted(n_cells, 'cell')} again")
        differences = _replay(replayable, sample)
    # At random, the cells of policies first.
    order = np.random.default_rng([seed, 1]).permutation(len(replayable)).tolist()
    order.sort(key=lambda place: replayable[place].source is None)
    whole = [replayable[place] for place in order[:whole_cells]]
    for each in whole:
        tell(f"playing all of {each.cell.path.stem} again")
        differences += _recompute(each, opened)
    verification = StoreVerification(
        cells=len(cells) + len(opened.damaged),
        problems=(*problems, *dict.fromkeys(differences)),
        episodes=sum(_n_episodes(cell) for cell in cells),
        replayable=sum(_n_episodes(each.cell) for each in replayable),
        replayed=n_episodes,
        replayed_cells=n_cells,
        recomputed_cells=len(whole),
        not_replayed=tuple(f"{counted(count, 'cell')}: {reason}" for reason, count in reasons.items()),
        seed=seed,
        version=gapfloor.__version__,
    )
    try:
        write_verification(opened.root, verification, cells)
    except GapfloorError as error:  # e.g. a store that can only be read
        return replace(verification, notes=(f"The result was not kept in the store: {error}",))
    return verification


def _replayable(
    cells: Sequence[StoredCell], store: Store, sources: Sequence[PolicySource], allowed: Sequence[str]
) -> tuple[list[_Replayable], Counter[str]]:
    """The cells that can be played again, and how many cannot, by reason."""
    found: list[_Replayable] = []
    reasons: Counter[str] = Counter()
    known: dict[object, PolicySource | GapfloorError | None] = {}
    for cell in cells:
        try:
            spec = spec_of(cell)
        except GapfloorError as error:
            reasons[str(error)] += 1
            continue
        if cell.manifest.record.get("repeatable") == "no":
            reasons["its policy only acts and cannot be seeded, so its episodes cannot be repeated"] += 1
            continue
        place = (spec.policy, spec.engine, spec.inference)
        if place not in known:
            try:
                refuse_unnamed_code(spec.engine, allowed=allowed)
                if spec.is_plain_reference:
                    parse_reference(spec.rule).check(action_space_of(spec.engine))
                    known[place] = None
                else:
                    known[place] = find_policy(spec, store=store, sources=sources)[0]
            except GapfloorError as error:
                known[place] = error
        answer = known[place]
        if isinstance(answer, GapfloorError):
            reasons[str(answer)] += 1
        else:
            found.append(_Replayable(cell, spec, answer))
    return found, reasons


def _sample(replayable: Sequence[_Replayable], episodes: int, seed: int) -> list[list[int]]:
    """For each cell the places of its episodes that will be played again: all episodes are equally likely."""
    sizes = np.array([_n_episodes(each.cell) for each in replayable], dtype=np.int64)
    total, starts = int(sizes.sum()), np.cumsum(sizes) - sizes
    chosen = np.sort(np.random.default_rng(seed).choice(total, size=min(episodes, total), replace=False))
    return [
        (chosen[(start <= chosen) & (chosen < start + size)] - start).tolist()
        for start, size in zip(starts, sizes, strict=True)
    ]


def _replay(replayable: Sequence[_Replayable], sample: Sequence[Sequence[int]]) -> list[str]:
    """What differed when the chosen episodes were played again."""
    differences = []
    for each, places in zip(replayable, sample, strict=True):
        if not places:
            continue
        policy = each.source.load() if each.source is not None else None
        recorded = recorded_episodes(each.cell)
        episodes = [recorded[place] for place in places]
        for episode, again in zip(episodes, play_again(each.spec, policy, episodes), strict=True):
            if again != (episode.episode_return, episode.length):
                differences.append(difference(episode, *again))
    return differences


def _recompute(each: _Replayable, store: Store) -> list[str]:
    """What differs in a cell's episodes and record when all of it is played again."""
    record, probe, left_out = each.cell.manifest.record, None, set[str]()
    if record.get("probe_states"):
        classes = None
        with contextlib.suppress(GapfloorError):
            classes = load_classes(store.root, each.spec.engine) if record.get("k") else None
        # Without the game's classes, the entropy over them cannot be computed again.
        left_out = set() if classes is not None else {"merged_game", "k"}
        probe = ProbeSettings(
            states=record["probe_states"], classes=classes.labels if classes is not None else ()
        )
    play, again = play_record(each.spec, each.source, probe=probe)
    found = []
    for episode, outcome in zip(recorded_episodes(each.cell), play.finished(), strict=True):
        if (outcome.episode_return, outcome.length) != (episode.episode_return, episode.length):
            found.append(difference(episode, outcome.episode_return, outcome.length))
    recorded, again = (
        {name: value for name, value in fields.items() if name not in left_out} for fields in (record, again)
    )
    return [*found, *(f"{each.cell.path.stem}: {text}" for text in record_differences(recorded, again))]


def _n_episodes(cell: StoredCell) -> int:
    episodes = cell.manifest.content.get("episodes")
    return episodes if isinstance(episodes, int) else 0


def cell_problems(cell: StoredCell) -> list[str]:
    """What does not fit in a cell, as ends of sentences; empty for a cell that gapfloor can have written."""
    try:
        return list(_problems(cell))
    except (GapfloorError, KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"its specification or its episodes cannot be read ({type(error).__name__}: {error})"]


def _problems(cell: StoredCell) -> Iterator[str]:
    content, labels, record = cell.manifest.content, cell.manifest.labels, cell.manifest.record
    if not cell.path.stem.endswith(f"-{cell.manifest.key[:16]}"):
        yield "the file is not named after the key"
    told = {name: content[name] for name in ("game", "mode", "level_set", "draw")}
    told["rule"] = labels["reference"] or content["rule"]
    for name, value in told.items():
        if labels[name] != value:
            yield f"it is labelled {name} {labels[name]}, but its specification says {value}"
    rows = read_episodes(cell.path)
    for name, value in labels.items():
        found = rows.column(name).unique().to_pylist()
        if found != [value]:
            yield f"its episodes are labelled {name} {found[:3]}, not {value}"
    if content["episodes"] != rows.num_rows:
        yield f"it has {rows.num_rows} episodes, not {content['episodes']}"
        return
    schedule = design_from(content).schedule(LevelSet.parse(content["levels"]), content["draw"])
    for name in ("slot", "index", "level_seed"):
        if not np.array_equal(rows.column(name).to_numpy(), getattr(schedule, name)):
            yield f"the column {name} is not that of the schedule"
    steps = int(rows.column("length").to_numpy().sum())
    counted = record["n_steps"] if record["action_counts"] is None else sum(record["action_counts"])
    if not steps == record["n_steps"] == counted:
        yield "its number of steps is not the sum of its episodes' lengths"


def play_record(
    spec: CellSpec, source: PolicySource | None, *, probe: ProbeSettings | None
) -> tuple[CellPlay, dict[str, Any]]:
    """The whole cell played again, and the record that its episodes give."""
    group = CellGroup(spec.engine, (spec,), source, probe)
    (piece,) = play_group(group, iter([[(spec, None)]]))
    play = CellPlay(spec, outcomes=dict(piece.outcomes))
    return play, finished_record(play, piece)


def record_differences(recorded: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a record that are not what was computed again, as ends of sentences."""
    for name in sorted({*recorded, *again}):
        before, now = recorded.get(name), again.get(name)
        if before != now:
            yield f"it records {name} {shortened(str(before), 80)}, but playing it again gave {shortened(str(now), 80)}"
