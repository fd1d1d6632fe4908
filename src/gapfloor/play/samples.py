"""Cells of a campaign read back from the store, as the samples that an analysis works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gapfloor.play.cell import CellSpec
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.store import Store, labelled_episodes
from gapfloor.rules import rule_kind

NAN = float("nan")


def read_sample(
    store: Store, cells: Sequence[CellSpec], *, level_set: str, rule: str | None = None
) -> EpisodeSample:
    """The episodes of those of `cells` (one run's, or the floor's) that are on a level set and under a rule."""
    mine = [cell for cell in cells if cell.level_set == level_set and rule in (None, cell.rule)]
    stored = [store.cell(cell.file_name) for cell in mine]
    episodes = labelled_episodes(stored, labels=(), columns=("episode_return", "level_seed"))
    records = [each.manifest.record for each in stored]
    raw = [NAN if (entropy := record.get("entropy_raw")) is None else float(entropy) for record in records]
    played = [_entropy_played(*each) for each in zip(mine, records, raw, strict=True)]
    total = np.sum([record.get("action_counts") or [0] for record in records], axis=0)
    return EpisodeSample(
        returns=episodes.column("episode_return").to_numpy(),
        levels=episodes.column("level_seed").to_numpy(),
        entropy_raw=float(np.mean(raw)),
        entropy_played=float(np.mean(played)),
        top_action_share=float(total.max() / total.sum()) if total.sum() else NAN,
    )


def _entropy_played(cell: CellSpec, record: Mapping[str, Any], raw: float) -> float:
    if cell.run.reference:
        return NAN
    rule = rule_kind(cell.rule)
    if rule.changes_distribution:
        found = record.get("entropy_played")
        return NAN if found is None else float(found)
    return 0.0 if rule.is_deterministic else raw
