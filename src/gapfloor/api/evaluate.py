"""Evaluate: policies under stated rules on both level sets, compared with the floor on the same draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.evaluation import summarise_evaluation
from gapfloor.analysis.evaluation_results import Evaluation
from gapfloor.api.policy_campaign import play_policies
from gapfloor.engines.protocol import Option
from gapfloor.errors import UsageError
from gapfloor.play.candidate import Entrant
from gapfloor.play.census_advice import census_notes
from gapfloor.play.protocol import INFERENCE_BATCH, make_protocol
from gapfloor.play.references import UNIFORM, check_references, recorded_name
from gapfloor.play.workers import Progress
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules


def evaluate(
    policies: Any,
    *,
    game: str,
    rules: str | Sequence[str],
    agent: str | None = None,
    budget: str | None = None,
    seeds: Sequence[int] | None = None,
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    train: str = "0:200",
    test: str = "1000:1100",
    draws: Sequence[int] = (0, 1, 2),
    episodes: int = 128,
    slots: int = 16,
    burn_in: int = 1,
    design: str = "draws",
    repeats: int = 1,
    batch: int = INFERENCE_BATCH,
    probe: int = 0,
    references: Sequence[str] = (),
    device: str = "cpu",
    backend: str | None = None,
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Returns, gaps and calls of one agent's policies under `rules`, compared with the floor on the same draws.

    `policies` is a checkpoint's path, `package.module:factory`, any callable from observations to logits, or a list of
    these: the runs of one agent. The floor is measured if the store does not hold it yet. `probe` is the number of
    states per sampled cell that are cloned to measure merged entropy (0: none). `references` names stricter references
    than the floor (`gapfloor.play.references`). `backend` is the library that computes the logits of gapfloor
    checkpoints (onnxruntime or torch; by default the one that filled the store, or the faster one). Without `store`
    the episodes are forgotten.
    """
    protocol = make_protocol(
        [game], mode=mode, options=options, train=train, test=test, draws=draws, episodes=episodes, slots=slots,
        burn_in=burn_in, design=design, repeats=repeats,
    )  # fmt: skip
    chosen = parse_rules(rules)
    check_references(references)
    entrants = _entrants(policies, agent=agent, budget=budget, seeds=seeds)
    with open_store(store) as opened:
        campaign = play_policies(
            {game: entrants},
            rules=chosen,
            protocol=protocol,
            store=opened,
            references=tuple(dict.fromkeys((UNIFORM, *references))),
            probe=probe,
            batch=batch,
            device=device,
            backend=backend,
            workers=workers,
            progress=progress,
        )
        asked = {recorded_name(name)[0] for name in references}
        stricter = [cell for cell in campaign.reference_cells if cell.run.reference in asked]
        return summarise_evaluation(
            floors=campaign.stored_cells(campaign.games[0].floor),
            cells=campaign.stored_cells(campaign.run_cells),
            references=campaign.stored_cells(stricter),
            notes=[*campaign.notes, *census_notes(protocol, chosen)],
            deterministic_rules=campaign.deterministic_rules,
        )


def _entrants(
    policies: Any, *, agent: str | None, budget: str | None, seeds: Sequence[int] | None
) -> list[Entrant]:
    given = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    if not given:
        raise UsageError("No policy is named: give a checkpoint or package.module:factory.")
    if seeds is not None and len(seeds) != len(given):
        raise UsageError(
            f"--seeds names {len(seeds)} seeds for {len(given)} policies: give one seed per policy."
        )
    return [
        Entrant(policy, agent, budget, seeds[number] if seeds is not None else None, number=number + 1)
        for number, policy in enumerate(given)
    ]
