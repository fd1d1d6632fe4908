"""Cells of a campaign read back from the store, as the samples that an analysis works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gapfloor.play.cell import CellSpec
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.store import Store, read_episodes
from gapfloor.rules import rule_kind

NAN = float("nan")


def read_sample(
    store: Store, cells: Sequence[CellSpec], *, level_set: str, rule: str | None = None
) -> EpisodeSample:
    """The episodes of those of `cells` (one run's, or the floor's) that are on a level set and under a rule."""
    mine = [cell for cell in cells if cell.level_set == level_set and rule in (None, cell.rule)]
    returns, levels, raw, played, counts = [], [], [], [], []
    for cell in mine:
        stored = store.cell(cell.file_name)
        table, record = read_episodes(stored.path), stored.manifest.record
        returns.append(table.column("episode_return").to_numpy())
        levels.append(table.column("level_seed").to_numpy())
        entropy = record.get("entropy_raw")
        raw.append(NAN if entropy is None else float(entropy))
        played.append(_entropy_played(cell, record, raw[-1]))
        counts.append(record.get("action_counts") or [0])
    total = np.sum(counts, axis=0)
    return EpisodeSample(
        returns=np.concatenate(returns),
        levels=np.concatenate(levels),
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
