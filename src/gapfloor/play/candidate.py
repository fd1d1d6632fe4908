"""A policy that is about to be played: loaded once, tried once, and identified by its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.engines.engine import EngineSpec
from gapfloor.errors import UsageError
from gapfloor.play.cell import Run
from gapfloor.play.group import CellGroup
from gapfloor.play.observers import CellProbe
from gapfloor.play.policy_trial import TriedPolicy, try_policy
from gapfloor.play.protocol import Protocol
from gapfloor.policies.load import PolicySource
from gapfloor.records.run_identity import agent_of_header
from gapfloor.rules import Rule


@dataclass(frozen=True)
class Entrant:
    """A policy as the user names it, and the labels of its run; None takes the checkpoint's own."""

    policy: Any
    agent: str | None = None
    budget: str | None = None
    seed: int | None = None
    number: int = 1
    """Its place among the policies given: the seed of a policy that names none."""


@dataclass(frozen=True)
class Candidate:
    """A policy that has been loaded and tried, and the labels of its run."""

    run: Run
    tried: TriedPolicy

    @property
    def source(self) -> PolicySource:
        """Where workers get the policy."""
        return self.tried.source

    def own_rules(self, rules: Sequence[Rule]) -> list[Rule]:
        """Those of `rules` that differ for this policy: one without a distribution has one rule."""
        mine = [rule for rule in rules if rule.reads_distribution != self.tried.acts]
        if not mine:
            raise UsageError(
                f"{self.source.name} only acts and returns no distribution, so it has one rule: use own, not "
                f"{', '.join(map(str, rules))}."
                if self.tried.acts
                else f"The rule own is for policies that only act, and {self.source.name} returns logits: use sampled "
                "or greedy."
            )
        if not self.tried.is_deterministic:
            return mine
        left = [rule for rule in mine if not rule.draws_from_policy]
        if not left:
            raise UsageError(
                f"{self.source.name} returns one action and no distribution, so it has one rule: use greedy, not "
                f"{', '.join(map(str, rules))}."
            )
        return left

    def notes(self, rules: Sequence[Rule]) -> list[str]:
        """What a reader should know about how this policy's actions are chosen."""
        dropped = [str(rule) for rule in rules if rule not in self.own_rules(rules)]
        if self.tried.acts:
            if self.tried.policy.is_repeatable:
                return []
            return [
                f"{self.run.name} cannot be seeded, so its episodes cannot be repeated exactly: give it seed(n), or "
                "state is_deterministic = True if it draws no random numbers."
            ]
        if dropped:
            return [
                f"{self.run.name} returns one action and no distribution, so it has one rule: {', '.join(dropped)} "
                "would play the same as greedy and was not played."
            ]
        greedy_action = self.tried.greedy_action
        if greedy_action != "mode" and any(str(rule) == "greedy" for rule in rules):
            return [f"Under the rule greedy, {self.run.name} plays {greedy_action}, which is not the mode."]
        return []

    def group(
        self,
        protocol: Protocol,
        engine: EngineSpec,
        rules: Sequence[Rule],
        *,
        probe: CellProbe | None = None,
    ) -> CellGroup:
        """The cells of this run under `rules`."""
        cells = tuple(
            cell
            for rule in self.own_rules(rules)
            for cell in protocol.cells(
                engine,
                self.run,
                policy=self.tried.fingerprint,
                rule=str(rule),
                inference=self.tried.inference,
                classes=rule.classes,
            )
        )
        return CellGroup(engine, cells, self.source, probe, self.tried.policy)


def load_candidates(
    entrants: Sequence[Entrant],
    engine: EngineSpec,
    *,
    batch: int,
    device: str,
    backend: str | None = None,
    recorded: Mapping[str, str] | None = None,
    acts: bool = False,
) -> tuple[Candidate, ...]:
    """Load each policy once; copies of one policy and two runs of one name are refused.

    `recorded` has the backends of policies that the store holds, by their hashes; others run in `backend`. `acts` says
    that policies are played under the rule own: a function is then one that returns an action.
    """
    found: list[Candidate] = []
    for entrant in entrants:
        source = policy_source(entrant.policy, device=device, backend=backend, number=entrant.number)
        source = source.acting() if acts else source
        tried = try_policy(source, engine=engine, batch=batch, recorded=recorded)
        header = tried.header
        run = Run(
            agent=entrant.agent if entrant.agent is not None else agent_of_header(header),
            seed=entrant.seed if entrant.seed is not None else header.get("seed", entrant.number),
            budget=entrant.budget if entrant.budget is not None else str(header.get("budget", "")),
        )
        candidate = Candidate(run, tried)
        for other in found:
            _refuse_copy(candidate, other)
        found.append(candidate)
    return tuple(found)


def policy_source(policy: Any, *, device: str, backend: str | None = None, number: int = 1) -> PolicySource:
    """Where a policy comes from: a name, or an object that is called by its own name or by its number."""
    if isinstance(policy, (str, Path, PolicySource)):
        return PolicySource.named(policy, device=device, backend=backend).fetched()
    name = getattr(policy, "name", None) or getattr(policy, "__name__", None) or f"policy {number}"
    return PolicySource(str(name), given=policy, backend=backend)


def _refuse_copy(candidate: Candidate, other: Candidate) -> None:
    names = f"{other.source.name} and {candidate.source.name}"
    if candidate.tried.fingerprint == other.tried.fingerprint:
        raise UsageError(
            f"{names} have exactly the same content: copies of one checkpoint count as one run, so name only one of "
            "them."
        )
    if candidate.run == other.run:
        raise UsageError(
            f"{names} would both be filed as {candidate.run.name}: give them other names with --agents or --seeds."
        )
