"""Evaluate: policies under stated rules on both level sets, compared with the floor on the same draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.evaluation import Evaluation, summarise_evaluation
from gapfloor.analysis.registry_entries import upper_reference
from gapfloor.api.policy_campaign import play_policies
from gapfloor.engines.engine import Option
from gapfloor.engines.registry import check_seed
from gapfloor.errors import UsageError
from gapfloor.play.candidate import Entrant
from gapfloor.play.census_advice import census_notes
from gapfloor.play.protocol import INFERENCE_BATCH, Levels, make_protocol
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
    train: Levels = "0:200",
    test: Levels = "1000:1100",
    draws: int | Sequence[int] = (0, 1, 2),
    episodes: int = 128,
    slots: int = 16,
    burn_in: int = 1,
    design: str = "draws",
    repeats: int = 1,
    batch: int = INFERENCE_BATCH,
    probe: int = 0,
    references: Sequence[str] = (),
    upper: float | str | None = None,
    device: str = "cpu",
    backend: str | None = None,
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> Evaluation:
    """Returns, gaps and calls of one agent's policies under stated rules, compared with the floor on the same draws.

    The floor is measured if the store does not hold it yet. A policy gives logits and never chooses the action: the
    rule does.

    Args:
        policies: One policy or a list, the runs of one agent. A checkpoint or the folder of a run, a file of another
            library (`sb3:model.zip`, `recurrent:`, `cleanrl:`, `statedict:`, `onnx:`),
            `package.module:factory`, or an object: a callable from observations to logits, a torch module, a model of
            Stable-Baselines3, an object with `predict_proba`.
        game: The game to evaluate on: a name of ProcGen, `gym:ID` or `package.module:make`.
        rules: Rules, separated by commas or as a list: sampled, greedy, merged, epsilon:E, temperature:T.
        agent: Name of the agent; None: from the checkpoint.
        budget: Label of the training budget, e.g. 8M; None: from the checkpoint.
        seeds: One seed per policy; None: from the checkpoints.
        mode: The engine's mode: ProcGen's easy (default), hard, extreme, memory or exploration.
        options: Options of the engine, e.g. `{"use_backgrounds": False}`.
        train: Training levels: START:STOP, a `range`, all or none.
        test: Held-out levels, in the same form as `train`.
        draws: Seeds of the level draws.
        episodes: Counted episodes per draw.
        slots: Parallel environments per draw.
        burn_in: First episodes of a slot that are not counted.
        design: Seeded draws of levels (`draws`, as in the paper), or every level equally often (`census`).
        repeats: Episodes per level in a census.
        batch: Inference batch size. Changing it changes the cell key.
        probe: Number of visited states per sampled cell to clone for merged entropy; 0: none.
        references: Stricter references than the floor; see `measure_floor`.
        upper: The return that counts as 1 in normalised scores, (R - floor)/(upper - floor): a number, or `published`
            for the upper reference that is published for this game. None: no normalised scores.
        device: Where networks run: cpu or cuda.
        backend: The library that computes the logits of gapfloor checkpoints: onnxruntime or torch; None: the one that
            filled the store, or the faster one.
        workers: Number of worker processes; None: one per core.
        store: The folder that keeps the cells; None: they are forgotten.
        progress: What hears of episodes and cells. None: a bar on a terminal, a line in a notebook; False: nothing.

    Returns:
        Rows of cells, returns, gaps and comparisons with the floor. One policy is not tested: a call is about the
        agent and needs several runs.

    Examples:
        A policy that always prefers one action:

        >>> import gapfloor
        >>> import numpy as np
        >>> def right(frames):
        ...     return np.where(np.arange(15) == 7, 2.0, 0.0) * np.ones((len(frames), 1))
        >>> result = gapfloor.evaluate(
        ...     right, game="starpilot", rules="sampled,greedy", draws=0, episodes=16, progress=False
        ... )
        >>> [(row.rule or row.reference, row.n_episodes) for row in result.returns if row.level_set == "test"]
        [('uniform', 16), ('sampled', 16), ('greedy', 16)]
        >>> result.to_dict()["gaps"][0]["rule"]
        'sampled'
    """
    protocol = make_protocol(
        [game], mode=mode, options=options, train=train, test=test, draws=draws, episodes=episodes, slots=slots,
        burn_in=burn_in, design=design, repeats=repeats,
    )  # fmt: skip
    chosen = parse_rules(rules)
    check_references(references)
    stated = upper_reference(upper, game=game, mode=mode)
    check_seed(protocol.engines[0])
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
            upper=stated,
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
