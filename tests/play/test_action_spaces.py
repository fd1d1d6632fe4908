"""Play in every action space: the queue and the plain loop agree, replays return what was recorded, masks hold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from balanced_loop import play_plainly
from command_line import run
from gapfloor.actions.distributions import Gaussian, SquashedGaussian
from gapfloor.api.evaluate import evaluate
from gapfloor.engines.registry import engine_from_spec, make_spec
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.actor import ReferenceActor, policy_actor
from gapfloor.play.cell import CellSpec, Design, Run, cell_record
from gapfloor.play.player import CellPlay, Player
from gapfloor.play.replay import play_again, recorded_episodes, spec_of
from gapfloor.policies.policy import as_policy
from gapfloor.policies.references import parse_reference
from gapfloor.records.store import Store
from gapfloor.rules.rule import parse_rule

LEVELS = LevelSet(0, 50)
WEIGHTS = np.random.default_rng(0).normal(size=(3, 90))


def gaussian(observations: Any) -> Any:
    return Gaussian(observations @ WEIGHTS[:, :2], np.full((len(observations), 2), 0.4))


def squashed(observations: Any) -> Any:
    return SquashedGaussian(observations @ WEIGHTS[:, :2], np.full((len(observations), 2), 0.4))


def several(observations: Any) -> Any:
    return (observations @ WEIGHTS[:, :9]).astype(np.float32)


def action(observations: Any) -> Any:
    return np.tanh(observations @ WEIGHTS[:, :2])


def logits(observations: Any) -> Any:
    return (observations @ WEIGHTS[:, :4]).astype(np.float32)


CASES = [
    ("box", gaussian, {}),
    ("box", squashed, {}),
    ("box", action, {}),
    ("multi_discrete", several, {}),
    ("masked_multi", several, {"masks": True}),
    ("masked", logits, {"masks": True}),
]


def outcomes_of(env: str, rule: str, options: Any, policy: Any = None) -> list[tuple[Any, ...]]:
    """A cell through the queue and through the plain loop."""
    spec = make_spec(f"action_space_envs:{env}", options=options)
    run_of = Run(agent="a", seed=1) if policy else Run(reference=rule)
    cell = CellSpec(spec, run_of, "hash", rule, "train", LEVELS, 0, Design(slots=4, burn_in=1, episodes=12))

    def actor(engine: Any) -> Any:
        if policy is None:
            return ReferenceActor(parse_reference(rule), space=engine.action_space)
        return policy_actor(as_policy(policy), name="mine", engine=engine)

    found = []
    for way in ("queue", "plain"):
        engine = engine_from_spec(spec, slots=4, levels=LEVELS)
        mine, play = actor(engine), CellPlay(cell)
        if way == "queue":
            player = Player(
                make_engine=lambda n: engine_from_spec(spec, slots=n, levels=LEVELS), actor=mine, n_slots=4
            )
            list(player.play([play]))
            outcomes = play.finished()
        else:
            outcomes = play_plainly(play, engine=engine, actor=mine)
        record = cell_record(play.schedule, outcomes, space=engine.action_space, actor=mine.record)
        found.append(([(each.episode_return, each.length) for each in outcomes], json.dumps(record)))
    return found


@pytest.mark.parametrize(("env", "policy", "options"), CASES)
@pytest.mark.parametrize("rule", ["sampled", "greedy", "epsilon:0.3", "temperature:0.5"])
def test_the_queue_gives_the_bytes_of_the_plain_loop(env: str, policy: Any, options: Any, rule: str) -> None:
    queued, plain = outcomes_of(env, rule, options, policy)
    assert queued == plain
    assert len({value for value, _ in queued[0]}) > 1


@pytest.mark.parametrize("reference", ["uniform", "sticky:0.8", "zero", "constant:0"])
@pytest.mark.parametrize(("env", "options"), [("box", {}), ("multi_binary", {}), ("masked", {"masks": True})])
def test_references_play_the_same_in_both_ways(env: str, options: Any, reference: str) -> None:
    queued, plain = outcomes_of(env, reference, options)
    assert queued == plain


def test_epsilon_in_a_box_explores_as_often_as_it_says() -> None:
    from gapfloor.actions.spaces import Box

    box, n = Box((-1.0, 0.0), (2.0, 0.5)), 20_000
    uniforms = np.random.default_rng(0).random((n, 2))
    chosen = parse_rule("epsilon:0.3").choose_row(gaussian(np.zeros((n, 3))), uniforms, box)
    explored = chosen[(chosen != 0).any(axis=1)]
    assert len(explored) / n == pytest.approx(0.3, abs=0.01)
    assert explored.mean(axis=0) == pytest.approx([0.5, 0.25], abs=0.03)


def test_an_evaluation_in_a_box_is_recorded_and_replayed(tmp_path: Any) -> None:
    result = evaluate(
        gaussian, game="action_space_envs:box", rules="sampled,greedy", train="0:20", test="30:40", draws=(0,),
        episodes=8, slots=4, workers=1, store=tmp_path,
    )  # fmt: skip
    assert {row.rule for row in result.floor_comparisons} == {"sampled", "greedy"}
    played = 0
    for cell in Store(tmp_path).cells():
        record, spec = cell.manifest.record, spec_of(cell)
        assert record["action_counts"] is None
        assert record["entropy_raw"] is None  # a differential entropy has its own name
        assert ("entropy_differential" in record) is not spec.is_plain_reference
        episodes = recorded_episodes(cell)
        policy = None if spec.is_plain_reference else as_policy(gaussian)
        again = play_again(spec, policy, episodes)
        assert again == [(each.episode_return, each.length) for each in episodes]
        played += len(again)
    assert played == 48


def test_the_rule_merged_is_refused_in_a_box(capsys: Any, tmp_path: Any) -> None:
    done = run(
        capsys, "evaluate", "play.test_action_spaces:make_gaussian", "--game", "action_space_envs:box", "--rules",
        "merged", "--store", tmp_path,
    )  # fmt: skip
    assert done.code == 2
    assert "numbered actions" in done.err


def make_gaussian() -> Any:
    return gaussian
