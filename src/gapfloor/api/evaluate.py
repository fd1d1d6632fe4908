"""Evaluate: policies under stated rules on both level sets, compared with the floor on the same draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapfloor.analysis.evaluation import Evaluation, summarise_evaluation
from gapfloor.api.keyword_settings import names_of, read_settings, takes
from gapfloor.api.policy_campaign import CampaignSettings, play_policies
from gapfloor.errors import UsageError
from gapfloor.play.candidate import Entrant
from gapfloor.play.references import UNIFORM, recorded_name
from gapfloor.records.store import open_store
from gapfloor.rules.rule import RULES, parse_rules
from gapfloor.tables.cells import counted


@takes(CampaignSettings)
def evaluate(
    policies: Any | Sequence[Any],
    *,
    game: str,
    rules: str | Sequence[str],
    agent: str | None = None,
    budget: str | None = None,
    seeds: Sequence[int] | None = None,
    probe: int = 0,
    references: Sequence[str] = (),
    upper: float | str | None = None,
    **settings: Any,
) -> Evaluation:
    """Evaluate policies under stated rules, and compare them with the floor on the same draws.

    The floor is measured if the store does not hold it yet. A policy gives logits and never chooses the action: the
    rule does.

    Args:
        policies: One or more policies, the runs of one agent: a checkpoint or the folder of a run, a file of another
            library (sb3:model.zip, cleanrl:, statedict:, onnx:), a file on the Hugging Face Hub (hf:OWNER/NAME),
            package.module:factory, or acting:package.module:Class for what only returns actions. In Python also an
            object: a callable from observations to logits, a torch module, a model of Stable-Baselines3.
        game: The game to evaluate on: a name of ProcGen, gym:ID, envpool:ID or package.module:make.
        rules: How actions are chosen: sampled, greedy, merged, epsilon:E, temperature:T; own for a policy that only
            returns actions.
        agent: Name of the agent (default: from the checkpoint).
        budget: Label of the training budget, e.g. 8M (default: from the checkpoint).
        seeds: One seed per policy, e.g. 1,2,3 (default: from the checkpoints).
        probe: Number of visited states per sampled cell to clone for merged entropy (the paper: 1024).
        references: References to measure in addition to the floor, e.g. best-constant; `gapfloor floor` lists them.
        upper: The return that counts as 1 in normalised scores, (R - floor)/(upper - floor), which are then shown too;
            `published` takes the published reference of the game.
        **settings: The fields of `CampaignSettings`.

    Returns:
        Rows of cells, returns, gaps and comparisons with the floor. One policy is not tested: a call is about the
        agent and needs several runs.

    Command line:
        gapfloor evaluate gapfloor-store/runs/starpilot-easy-impala-8M-s1 --game starpilot --rules sampled,greedy
        gapfloor evaluate runs/starpilot-easy-impala-8M-s1 --game starpilot --rules greedy --design census
        gapfloor evaluate sb3:model.zip --game gym:MiniGrid-FourRooms-v0 --rules sampled,greedy
        gapfloor evaluate mypackage.agents:load --game heist --rules sampled --agent mine --budget 25M

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
    asked = read_settings(CampaignSettings, settings)
    chosen = parse_rules(rules)
    references = names_of(references)
    stated = None
    if upper is not None:
        from gapfloor.analysis.known_floors import upper_reference

        stated = upper_reference(upper, game=game, mode=asked.mode)
    with open_store(asked.store) as opened:
        campaign = play_policies(
            {game: _entrants(policies, agent=agent, budget=budget, seeds=seeds)},
            rules=chosen,
            asked=asked,
            store=opened,
            references=tuple(dict.fromkeys((UNIFORM, *references))),
            probe=probe,
        )
        named = {recorded_name(name)[0] for name in references}
        stricter = [cell for cell in campaign.reference_cells if cell.run.reference in named]
        return summarise_evaluation(
            floors=campaign.stored_cells(campaign.games[0].floor),
            cells=campaign.stored_cells(campaign.run_cells),
            references=campaign.stored_cells(stricter),
            notes=campaign.notes,
            deterministic_rules=campaign.deterministic_rules,
            upper=stated,
        )


def _entrants(
    policies: Any, *, agent: str | None, budget: str | None, seeds: Sequence[int] | None
) -> list[Entrant]:
    given = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    if not given:
        raise UsageError("No policy is named: give a checkpoint or package.module:factory.")
    for policy in given:
        if isinstance(policy, str) and policy.partition(":")[0] in RULES:
            raise UsageError(
                f"'{policy}' is a rule and stands where a policy is expected: write several rules with commas, e.g. "
                "sampled,greedy."
            )
    if seeds is not None and len(seeds) != len(given):
        raise UsageError(
            f"{counted(len(seeds), 'seed')} for {counted(len(given), 'policy', 'policies')}: give one seed per policy."
        )
    return [
        Entrant(policy, agent, budget, seeds[number] if seeds is not None else None, number=number + 1)
        for number, policy in enumerate(given)
    ]
