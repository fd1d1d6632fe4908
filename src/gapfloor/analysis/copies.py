"""Runs that are copies: every episode equals another run's, so that one checkpoint stands under two names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gapfloor.analysis.grouping import RunName, RunSample, StudyEpisodes


@dataclass(frozen=True)
class RunCopy:
    """A run and the one that it repeats."""

    game: str
    mode: str
    budget: str
    run: RunName
    first_budget: str
    first: RunName


def copied_runs(study: StudyEpisodes) -> tuple[RunCopy, ...]:
    """Every run whose episodes equal those of an earlier one, under every rule and on every level set."""
    prints: dict[tuple[str, str], dict[tuple[str, RunName], list[bytes]]] = {}
    varying: set[tuple[str, str, str, RunName]] = set()
    for condition in sorted(study.policies):
        game, mode, budget, rule, level_set = condition
        for run, sample in study.policies[condition].items():
            digest = _fingerprint(rule, level_set, sample)
            prints.setdefault((game, mode), {}).setdefault((budget, run), []).append(digest)
            if (sample.returns != sample.returns[0]).any():
                varying.add((game, mode, budget, run))
    copies = []
    for (game, mode), by_run in prints.items():
        seen: dict[tuple[bytes, ...], tuple[str, RunName]] = {}
        for (budget, run), digests in by_run.items():
            # Policies that never score are equal without being copies.
            if (game, mode, budget, run) not in varying:
                continue
            first = seen.setdefault(tuple(digests), (budget, run))
            if first != (budget, run):
                copies.append(RunCopy(game, mode, budget, run, *first))
    return tuple(copies)


def _fingerprint(rule: str, level_set: str, sample: RunSample) -> bytes:
    digest = hashlib.sha256(f"{rule}|{level_set}|{sample.draws}".encode())
    digest.update(sample.returns.tobytes())
    digest.update(sample.levels.tobytes())
    digest.update(sample.draw.tobytes())
    return digest.digest()
