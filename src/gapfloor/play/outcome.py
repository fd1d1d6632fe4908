"""What one episode leaves behind, and what a cell makes of its episodes.

Sums are taken within an episode in the order of its steps, then over episodes in the order of the
schedule: a cell's numbers do not depend on which worker played what, or when.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import ActionSpace
from gapfloor.levels import Schedule
from gapfloor.rules import Rule

#: Length of the short window at the start of a cell whose entropy the paper compares with that of the whole cell.
FIRST_STATES = 1024


@dataclass(frozen=True)
class EpisodeOutcome:
    """One counted episode."""

    episode_return: float
    length: int
    action_counts: npt.NDArray[Any]
    """How often each action was taken; where actions are rows, what the space adds up of them."""
    entropies: npt.NDArray[np.float64] | None = None
    """Raw entropy at each step; None for references, which have no distribution to speak of."""
    disagreements: int | None = None
    """Steps on which a merged rule chose another class than plain argmax; None for other rules."""
    played_entropy: float | None = None
    """Sum over steps of the entropy of what was drawn from, for rules that change the distribution."""


def cell_record(
    schedule: Schedule, outcomes: Sequence[EpisodeOutcome], *, space: ActionSpace, actor: Mapping[str, str]
) -> dict[str, Any]:
    """The cell record of contract 6, without what observers and the device add; `actor` is the actor's `record`."""
    described = dict(actor)
    entropy_field = described.pop("entropy_field", "entropy_raw")
    n_steps = sum(outcome.length for outcome in outcomes)
    counts = np.sum([outcome.action_counts for outcome in outcomes], axis=0)
    record: dict[str, Any] = {
        "n_steps": n_steps,
        "entropy_raw": None,
        "entropy_first1024": None,
        "entropy_probe": None,
        "merged_state": None,
        "merged_game": None,
        "mean_ln_k": None,
        "disagreement": None,
        **space.summary(counts, n_steps),
        **described,
    }
    if entropy_field != "entropy_raw":
        record["entropy_played"] = None  # not measured, under any rule
    entropies = [outcome.entropies for outcome in outcomes if outcome.entropies is not None]
    if len(entropies) == len(outcomes) and entropy_field != "entropy_raw":
        # Neither a differential entropy nor one without numbered actions can be screened: they have their own names.
        record[entropy_field] = math.fsum(float(values.sum()) for values in entropies) / n_steps
    elif len(entropies) == len(outcomes):
        record["entropy_raw"] = math.fsum(float(values.sum()) for values in entropies) / n_steps
        record["entropy_first1024"] = _first_states_mean(schedule, entropies)
    disagreements = [outcome.disagreements for outcome in outcomes if outcome.disagreements is not None]
    if len(disagreements) == len(outcomes):
        record["disagreement"] = sum(disagreements) / n_steps
    played = [outcome.played_entropy for outcome in outcomes if outcome.played_entropy is not None]
    if len(played) == len(outcomes):
        # Only here: sampling plays the raw distribution and greedy none, so their records need no such field.
        record["entropy_played"] = math.fsum(played) / n_steps
    return record


def is_complete(record: Mapping[str, Any], rule: type[Rule], *, probe_states: int = 0) -> bool:
    """Whether a stored record says all that is asked for now; if not, the same episodes are played again."""
    if rule.changes_distribution and "entropy_played" not in record:
        return False
    if rule.is_deterministic or not rule.reads_distribution:
        return True
    # Probed with as many states as asked for, or with all there are.
    return bool(record.get("probe_states", 0) >= min(probe_states, record["n_steps"]))


def _first_states_mean(schedule: Schedule, entropies: Sequence[npt.NDArray[np.float64]]) -> float:
    """Mean entropy of the first states in the order (index, step, slot)."""
    collected: list[npt.NDArray[np.float64]] = []
    missing = FIRST_STATES
    for index in np.unique(schedule.index):
        members = [entropies[position] for position in np.flatnonzero(schedule.index == index)]
        steps = np.concatenate([np.arange(len(values)) for values in members])
        slots = np.repeat(np.arange(len(members)), [len(values) for values in members])
        ordered = np.concatenate(members)[np.lexsort((slots, steps))][:missing]
        collected.append(ordered)
        missing -= len(ordered)
        if missing <= 0:
            break
    first = np.concatenate(collected)
    return math.fsum(first.tolist()) / len(first)
