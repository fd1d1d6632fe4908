"""A cell: one run or reference, under one rule, on one level set and draw, and the record that is made of its episodes.

A cell is content-addressed: its key is the hash of everything that can change its episodes. Labels (agent,
seed, budget) are not in the key, because they change nothing; the store refuses to file the same
content under two labels.

Sums are taken within an episode in the order of its steps, then over episodes in the order of the schedule: a cell's
numbers do not depend on which worker played what, or when.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import Partition
from gapfloor.actions.spaces import ActionSpace
from gapfloor.engines.engine import EngineSpec
from gapfloor.levels.schedule import LevelSet, Schedule, census_schedule, drawn_schedule
from gapfloor.policies.references import parse_reference
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.stored_cell import canonical_json, content_key
from gapfloor.rules.rule import Rule, parse_rule, rule_kind

#: Raised whenever the harness would play or count an episode differently.
PROTOCOL_VERSION = 2

Role = Literal["train", "test"]


@dataclass(frozen=True)
class Run:
    """Who is measured: the run of a trained agent, or a reference (then agent and budget are empty)."""

    agent: str = ""
    seed: int | None = None
    budget: str = ""
    reference: str = ""

    @property
    def name(self) -> str:
        """A short name for messages."""
        return RunIdentity(
            agent=self.reference or self.agent, budget=self.budget, seed=self.seed
        ).name_in_game


@dataclass(frozen=True)
class Design:
    """How the episodes of a cell are laid out; cells of different designs are never compared.

    A seeded draw of levels (the paper's), or, where `repeats` is not 0, a census: every level that many times.
    """

    slots: int = 16
    burn_in: int = 1
    episodes: int = 128
    repeats: int = 0

    @property
    def is_census(self) -> bool:
        """Whether every level is played equally often."""
        return self.repeats > 0

    def content(self, levels: LevelSet) -> dict[str, int]:
        """The design on a level set, as a cell's key has it."""
        if self.is_census:
            episodes = levels.n * self.repeats
            return {"slots": levels.n, "burn_in": 0, "episodes": episodes, "repeats": self.repeats}
        return {"slots": self.slots, "burn_in": self.burn_in, "episodes": self.episodes}

    @functools.lru_cache(maxsize=256)  # noqa: B019 (a design is a few numbers)
    def schedule(self, levels: LevelSet, draw: int) -> Schedule:
        """The counted episodes of a cell of this design."""
        if self.is_census:
            return census_schedule(levels, repeats=self.repeats)
        counts = {"slots": self.slots, "episodes": self.episodes, "burn_in": self.burn_in}
        return drawn_schedule(levels, draw=draw, **counts)

    def __str__(self) -> str:
        if self.is_census:
            return f"census, every level {'once' if self.repeats == 1 else f'{self.repeats} times'}"
        return f"{self.slots} slots, {self.burn_in} burn-in, {self.episodes} episodes"


def design_from(content: Mapping[str, Any]) -> Design:
    """The design that a cell's content records."""
    if content.get("repeats"):
        return Design(slots=0, burn_in=0, episodes=0, repeats=content["repeats"])
    return Design(content["slots"], content["burn_in"], content["episodes"])


@dataclass(frozen=True)
class Inference:
    """How logits are computed: batch shape, library, device and the machine's arithmetic change the last bits."""

    batch: int = 0
    backend: str = ""
    backend_version: str = ""
    device: str = ""
    arithmetic: str = ""
    """The hash of the policy's own logits on a fixed batch (`play.candidate`)."""


#: Of references that are played without a policy.
NO_NETWORK = Inference()


@dataclass(frozen=True)
class CellSpec:
    """Everything that can change a cell's episodes, and the labels under which it is filed."""

    engine: EngineSpec
    run: Run
    policy: str
    """The policy's fingerprint, or the reference's name."""
    rule: str
    level_set: Role
    levels: LevelSet
    draw: int
    design: Design = Design()
    inference: Inference = NO_NETWORK
    classes: tuple[int, ...] = ()
    """The partition that a merged rule reads, as labels; empty for the other rules."""

    def content(self) -> dict[str, Any]:
        """What the key is made of, as plain JSON values."""
        return {
            "protocol": PROTOCOL_VERSION,
            "engine": self.engine.engine,
            "engine_version": self.engine.version,
            "game": self.engine.game,
            "mode": self.engine.mode,
            "options": dict(self.engine.options),
            "level_set": self.level_set,
            "levels": str(self.levels),
            "draw": self.draw,
            **self.design.content(self.levels),
            "policy": self.policy,
            "rule": self.rule,
            "classes": list(self.classes),
            **dataclasses.asdict(self.inference),
        }

    @functools.cached_property
    def key(self) -> str:
        """The content hash."""
        return content_key(self.content())

    @functools.cached_property
    def file_name(self) -> str:
        """A readable file name that ends in the start of the key."""
        parts = [self.engine.game, self.engine.mode, self.run.name]
        if not self.run.reference:
            parts.append(self.rule)
        parts += [self.level_set, "census" if self.design.is_census else f"d{self.draw}"]
        readable = "-".join(re.sub(r"[^A-Za-z0-9.]+", "_", part) for part in parts if part)
        return f"{readable[:120]}-{self.key[:16]}"

    @functools.cached_property
    def stream_name(self) -> str:
        """The part of the names of random streams that all episodes of the cell share."""
        # A census shares no stream with a draw that happens to have the same slot and index.
        draw = "census" if self.design.is_census else self.draw
        game = (self.engine.engine, self.engine.game, self.engine.mode)
        return canonical_json(["action", *game, self.policy, self.rule, str(self.levels), draw])

    @property
    def bound_rule(self) -> Rule | None:
        """The rule that chooses actions, with the action classes that it reads; None for a plain reference."""
        if self.is_plain_reference:
            return None
        return parse_rule(self.rule).bind(Partition(self.classes) if self.classes else None)

    @property
    def is_plain_reference(self) -> bool:
        """Whether the cell is played without any policy."""
        return bool(self.run.reference) and not self.inference.batch

    @functools.cached_property
    def is_deterministic(self) -> bool:
        """Whether an episode is a function of its level alone."""
        if self.is_plain_reference:
            return parse_reference(self.rule).is_deterministic
        return rule_kind(self.rule).is_deterministic

    @property
    def labels(self) -> dict[str, Any]:
        """The label columns of the cell's rows."""
        return {
            "game": self.engine.game,
            "mode": self.engine.mode,
            "budget": self.run.budget,
            "agent": self.run.agent,
            "seed": self.run.seed,
            "reference": self.run.reference,
            # A reference is one thing: where it has a network, how that acts is in the cell's content.
            "rule": self.run.reference or self.rule,
            "level_set": self.level_set,
            "draw": self.draw,
        }

    def schedule(self) -> Schedule:
        """The counted episodes of this cell."""
        return self.design.schedule(self.levels, self.draw)


def episode_stream(stream_name: str, *, slot: int, index: int) -> np.random.Generator:
    """The generator of one episode's uniform numbers; `stream_name` is that of its cell.

    The stream is keyed by everything that names the episode. No two policies, rules, level sets, draws or references
    share one, an episode can be replayed alone, and it does not matter which worker plays it or what else is played.
    """
    digest = hashlib.sha256(f"{stream_name}/{slot}/{index}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


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
