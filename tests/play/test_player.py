"""The player against the plain loop, on a fake engine for counting and on the real one for bytes."""

import numpy as np
import pytest

import small_policies
from balanced_loop import play_plainly
from gapfloor.actions import Partition
from gapfloor.actions.spaces import Discrete
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.procgen import ProcgenEngine, make_spec
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.actor import PolicyActor, ReferenceActor
from gapfloor.play.cell import CellSpec, Design, Run, cell_record
from gapfloor.play.player import CellPlay, Player
from gapfloor.policies.policy import as_policy
from gapfloor.policies.references import Constant, Uniform
from gapfloor.rules.rule import parse_rule
from play.fake_engine import LengthEngine, length_of

LEVELS = LevelSet(0, 200)
FAKE = EngineSpec("fake", "1", "length", "easy")
DEFAULT = Design()


def reference_cell(spec, *, draw=0, design=DEFAULT, reference="uniform", levels=LEVELS):
    return CellSpec(spec, Run(reference=reference), reference, reference, "train", levels, draw, design)


def play_fake(cells, slots=16):
    player = Player(
        make_engine=lambda n: LengthEngine(n, LEVELS),
        actor=ReferenceActor(Uniform(), space=Discrete(15)),
        n_slots=slots,
    )
    return {play.spec.draw: play for play in player.play(CellPlay(cell) for cell in cells)}


@pytest.mark.fast
def test_neither_short_nor_long_episodes_are_favoured():
    play = play_fake([reference_cell(FAKE)])[0]
    expected = [length_of(level) for level in play.schedule.level_seed.tolist()]
    assert [outcome.episode_return for outcome in play.finished()] == expected


def first_episodes_that_finish(draw, episodes=128):
    """The counter that many harnesses use: stop when enough episodes have ended, whichever they are."""
    engine = LengthEngine(16, LEVELS, draw=draw)
    returns, running = [], np.zeros(16)
    while len(returns) < episodes:
        _, rewards, firsts = engine.step(np.zeros(16))
        running += rewards
        returns += running[firsts].tolist()
        running[firsts] = 0
    return np.mean(returns)


@pytest.mark.fast
def test_counting_the_first_episodes_that_finish_would_fail_the_test_above():
    fair = np.mean([length_of(level) for level in range(200)])
    cells = [reference_cell(FAKE, draw=draw) for draw in range(10)]
    ours = np.mean(
        [outcome.episode_return for play in play_fake(cells).values() for outcome in play.finished()]
    )
    naive = np.mean([first_episodes_that_finish(draw) for draw in range(10)])
    # 1,280 episodes with an sd of 86: the standard error of a fair mean is 2.4.
    assert ours == pytest.approx(fair, abs=8)
    assert naive < fair - 12


@pytest.mark.fast
@pytest.mark.parametrize("slots", [1, 5, 16, 64])
def test_how_many_slots_play_changes_nothing(slots):
    cells = [reference_cell(FAKE, draw=draw) for draw in range(3)]
    expected = play_fake(cells, slots=16)
    played = play_fake(cells, slots=slots)
    for draw in range(3):
        assert_same(played[draw].finished(), expected[draw].finished())


@pytest.mark.fast
def test_the_player_equals_the_plain_loop_on_the_fake_engine():
    cell = reference_cell(FAKE, draw=2)
    plain = play_plainly(
        CellPlay(cell),
        engine=LengthEngine(16, LEVELS, draw=2),
        actor=ReferenceActor(Uniform(), space=Discrete(15)),
    )
    assert_same(play_fake([cell])[2].finished(), plain)


def assert_same(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.episode_return == other.episode_return
        assert one.length == other.length
        assert np.array_equal(one.action_counts, other.action_counts)
        assert one.disagreements == other.disagreements
        assert one.played_entropy == other.played_entropy
        if other.entropies is None:
            assert one.entropies is None
        else:
            assert np.array_equal(one.entropies, other.entropies)


DESIGN = Design(slots=4, burn_in=1, episodes=12)
SMALL = LevelSet(0, 6)
PARTITION = Partition.from_classes([[0, 1, 2], [3], [4, 9, 10, 11, 12, 13, 14], [5], [6, 7, 8]])


@pytest.mark.parametrize("game", ["fruitbot", "bossfight"])
@pytest.mark.parametrize("rule", ["sampled", "greedy", "merged", "epsilon:0.3", "temperature:0.5"])
@pytest.mark.parametrize("make_policy", [small_policies.LinearPolicy, small_policies.CountingPolicy])
def test_the_player_gives_the_bytes_of_the_plain_loop_for_every_rule(game, rule, make_policy):
    spec = make_spec(game)
    classes = parse_rule(rule).bind(PARTITION).classes
    cells = [
        CellSpec(spec, Run(agent="a", seed=1), "hash", rule, "train", SMALL, draw, DESIGN, classes=classes)
        for draw in (0, 1)
    ]
    plays = [CellPlay(cell) for cell in cells]

    def actor():
        return PolicyActor(as_policy(make_policy()), name="p", space=Discrete(15), noop=4)

    player = Player(
        make_engine=lambda n: ProcgenEngine(game, slots=n, levels=SMALL), actor=actor(), n_slots=6
    )
    played = {play.spec.draw: play for play in player.play(plays)}
    for cell in cells:
        plain = CellPlay(cell)
        engine = ProcgenEngine(game, slots=4, levels=SMALL, draw=cell.draw)
        outcomes = play_plainly(plain, engine=engine, actor=actor(), batch=6)
        assert_same(played[cell.draw].finished(), outcomes)
        described = {"space": Discrete(15), "actor": {}}
        assert cell_record(plain.schedule, outcomes, **described) == cell_record(
            played[cell.draw].schedule, played[cell.draw].finished(), **described
        )


@pytest.mark.parametrize(("reference", "name"), [(Uniform(), "uniform"), (Constant("7"), "constant:7")])
@pytest.mark.parametrize("game", ["starpilot", "coinrun"])
def test_references_give_the_bytes_of_the_plain_loop(game, reference, name):
    cell = reference_cell(make_spec(game), design=DESIGN, reference=name, levels=SMALL)
    player = Player(
        make_engine=lambda n: ProcgenEngine(game, slots=n, levels=SMALL),
        actor=ReferenceActor(reference, space=Discrete(15)),
        n_slots=5,
    )
    played = next(player.play([CellPlay(cell)]))
    plain = play_plainly(
        CellPlay(cell),
        engine=ProcgenEngine(game, slots=4, levels=SMALL, draw=0),
        actor=ReferenceActor(reference, space=Discrete(15)),
    )
    assert_same(played.finished(), plain)


def test_a_deterministic_rule_plays_each_level_once():
    steps = []

    class Counting(LengthEngine):
        def step(self, actions):
            steps.append(self.n_slots)
            return super().step(actions)

    levels = LevelSet(0, 8)
    cells = [reference_cell(FAKE, draw=draw, reference="constant:3", levels=levels) for draw in range(3)]
    player = Player(
        make_engine=lambda n: Counting(n, levels),
        actor=ReferenceActor(Constant("3"), space=Discrete(15)),
        n_slots=1,
    )
    plays = list(player.play(CellPlay(cell) for cell in cells))
    assert len(plays) == 3
    for play in plays:
        assert [o.length for o in play.finished()] == [length_of(level) for level in play.schedule.level_seed]
    assert sum(steps) == sum(length_of(level) for level in range(8))


@pytest.mark.fast
def test_no_two_cells_share_an_action_stream():
    from gapfloor.play.cell import episode_stream

    base = reference_cell(FAKE)
    others = [
        reference_cell(FAKE, draw=1),
        reference_cell(FAKE, levels=LevelSet(1000, 1100)),
        reference_cell(FAKE, reference="constant:1"),
        CellSpec(FAKE, Run(agent="a", seed=1), "h1", "sampled", "train", LEVELS, 0),
        CellSpec(FAKE, Run(agent="a", seed=2), "h2", "sampled", "train", LEVELS, 0),
        CellSpec(FAKE, Run(agent="a", seed=1), "h1", "temperature:0.5", "train", LEVELS, 0),
    ]
    names = [cell.stream_name for cell in [base, *others]]
    numbers = [episode_stream(name, slot=0, index=1).random() for name in names]
    numbers += [
        episode_stream(names[0], slot=1, index=1).random(),
        episode_stream(names[0], slot=0, index=2).random(),
    ]
    assert len(set(numbers)) == len(numbers)
