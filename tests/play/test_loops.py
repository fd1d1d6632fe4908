"""Episodes that repeat themselves are moved to their end, with the bytes of an episode that was played."""

import numpy as np
import pytest

import small_policies
from gapfloor.actions import Partition
from gapfloor.actions.spaces import Discrete
from gapfloor.engines.procgen import ProcgenEngine, make_spec
from gapfloor.engines.procgen_state import LoopFinder, LoopMark, loops_of
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.actor import PolicyActor, ReferenceActor
from gapfloor.play.cell import CellSpec, Design, EpisodeOutcome, Run
from gapfloor.play.player import CellPlay, Player
from gapfloor.policies.frame_cache import CachedPolicy
from gapfloor.policies.references import Constant
from gapfloor.rules.rule import parse_rule

LEVELS = LevelSet(0, 12)
DESIGN = Design(slots=4, burn_in=0, episodes=12)
PARTITION = Partition.from_classes([[0, 1, 2], [3], [4, 9, 10, 11, 12, 13, 14], [5], [6, 7, 8]])


class BlackAndWhite(small_policies.LinearPolicy):
    """Actions that depend on a few pixels only, so that different states get the same answer."""

    def logits(self, observations):
        return super().logits((observations > 128) * np.uint8(255))


def play(game, rule, *, loops, policy=None, mode="easy"):
    """The outcomes of one cell, and how often the engine stepped."""
    spec = make_spec(game, mode=mode)
    run, classes = Run(reference=rule), ()
    if policy is not None:
        run, classes = Run(agent="a", seed=1), parse_rule(rule).bind(PARTITION).classes
    cell = CellSpec(spec, run, "hash", rule, "train", LEVELS, 0, DESIGN, classes=classes)
    steps = []

    class Counting(ProcgenEngine):
        def step(self, actions):
            steps.append(self.n_slots)
            return super().step(actions)

    if policy is None:
        actor = ReferenceActor(Constant(rule.partition(":")[2]), space=Discrete(15))
    else:
        actor = PolicyActor(policy, name="p", space=Discrete(15), noop=4)
    player = Player(
        make_engine=lambda n: Counting(game, slots=n, levels=LEVELS, mode=mode),
        actor=actor,
        n_slots=6,
        loops=loops_of(spec) if loops else None,
    )
    (played,) = player.play([CellPlay(cell)])
    return played.finished(), sum(steps)


def assert_same(ours: list[EpisodeOutcome], theirs: list[EpisodeOutcome]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one.episode_return, one.length) == (other.episode_return, other.length)
        assert one.disagreements == other.disagreements
        assert np.array_equal(one.action_counts, other.action_counts)
        assert (one.entropies is None) == (other.entropies is None)
        if one.entropies is not None:
            assert np.array_equal(one.entropies, other.entropies)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", ["greedy", "merged"])
@pytest.mark.parametrize(("game", "mode"), [("miner", "easy"), ("maze", "hard"), ("heist", "easy")])
def test_a_skipped_loop_leaves_the_bytes_of_a_played_one(game, mode, rule, seed):
    def policy():
        return CachedPolicy(BlackAndWhite(seed=seed))

    expected, all_steps = play(game, rule, loops=False, policy=policy(), mode=mode)
    found, some_steps = play(game, rule, loops=True, policy=policy(), mode=mode)
    assert_same(found, expected)
    assert some_steps < all_steps / 2


@pytest.mark.parametrize("game", ["miner", "maze", "heist"])
@pytest.mark.parametrize("action", ["1", "4", "8"])
def test_a_constant_action_ends_in_a_loop(game, action):
    expected, all_steps = play(game, f"constant:{action}", loops=False)
    found, some_steps = play(game, f"constant:{action}", loops=True)
    assert_same(found, expected)
    assert some_steps < all_steps / 2


def test_rules_with_chance_and_policies_that_are_not_known_to_be_functions_are_played_in_full():
    cached, plain = CachedPolicy(BlackAndWhite()), BlackAndWhite()
    for rule, policy in [("epsilon:0.01", cached), ("greedy", plain)]:
        outcomes, steps = play("miner", rule, loops=True, policy=policy)
        assert steps >= sum(outcome.length for outcome in outcomes)


@pytest.mark.fast
def test_games_with_chance_or_time_in_them_have_no_loops():
    assert loops_of(make_spec("heist")).longest == 1
    for game in ("starpilot", "coinrun", "leaper", "caveflyer"):
        assert loops_of(make_spec(game)) is None


def walk(positions, *, entropy=0.0):
    """The step at which a finder sees that a path repeats itself, the mark, and how many positions it asked for."""
    finder = LoopFinder(1)
    finder.begin(0, is_deterministic=True)
    asked = 0
    for step, position in enumerate(positions):
        for row in finder.due(np.array([step]), np.array([entropy])):
            asked += 1
            now = LoopMark(step, position, 0.0, np.zeros(15, dtype=np.int64), 0)
            mark = finder.found(row, now, entropy)
            if mark is not None:
                return step, mark.step, asked
    return None, None, asked


@pytest.mark.fast
@pytest.mark.parametrize(("start", "period"), [(0, 1), (5, 1), (20, 2), (70, 3)])
def test_a_loop_is_found_soon_after_its_beginning(start, period):
    path = [b"%d" % step for step in range(start)]
    path += [b"loop %d" % (step % period) for step in range(1000)]
    found, marked, _ = walk(path)
    assert found - marked == period
    assert found <= max(8, 2 * start) + period


@pytest.mark.fast
def test_a_path_that_does_not_repeat_itself_costs_few_looks():
    found, _, asked = walk([b"%d" % step for step in range(1000)])
    assert found is None
    assert asked <= 7 * 5
