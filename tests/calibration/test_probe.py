"""The probe: which states, how many are held, what the record says."""

import math

import numpy as np
import pytest

import small_policies
from gapfloor.actions import Partition, entropy, merged_entropy
from gapfloor.actions.spaces import Discrete
from gapfloor.calibration.classes import shipped_classes
from gapfloor.calibration.probe import ProbeObserver, ProbeSettings, position_hash
from gapfloor.engines.procgen import ProcgenEngine, make_spec
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.actor import PolicyActor
from gapfloor.play.cell import CellSpec, Design, Run
from gapfloor.play.player import CellPlay, Player

LEVELS = LevelSet(0, 200)


class CountingEngine:
    """Saves nothing but how often it was asked."""

    saved = 0

    def save(self, row):
        self.saved += 1
        return bytes([row])


def positions(slots=16, indices=8, steps=100):
    grid = np.meshgrid(np.arange(slots), np.arange(indices), np.arange(steps), indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1)


def show(observer, engine, places, batch=16):
    for first in range(0, len(places), batch):
        some = places[first : first + batch]
        wanted = observer.wants(*some.T)
        for row in np.flatnonzero(wanted):
            slot, index, step = (int(number) for number in some[row])
            observer.see(engine, row, slot=slot, index=index, step=step, probabilities=np.full(15, 1 / 15))


@pytest.mark.fast
@pytest.mark.parametrize("states", [1, 100, 1024, 20_000])
def test_the_probe_is_the_smallest_hashes_in_whatever_order_play_goes(states):
    places = positions()
    hashes = position_hash(*places.T)
    expected = [tuple(place) for place in places[np.argsort(hashes)][:states].tolist()]
    for order in (np.arange(len(places)), np.random.default_rng(0).permutation(len(places))):
        observer = ProbeObserver(make_spec("fruitbot"), ProbeSettings(states=states))
        show(observer, CountingEngine(), places[order])
        assert [seen.position for seen in observer.held()] == expected


@pytest.mark.fast
def test_never_more_states_are_held_than_the_probe_has():
    observer, engine = ProbeObserver(make_spec("fruitbot"), ProbeSettings(states=64)), CountingEngine()
    places = positions()
    for first in range(0, len(places), 500):
        show(observer, engine, places[first : first + 500])
        assert len(observer.held()) <= 64
    # A uniform sample kept on the way costs about n (1 + ln(N/n)) saved states, not N.
    assert engine.saved < 3 * 64 * (1 + math.log(len(places) / 64))


@pytest.mark.fast
def test_hashes_are_spread_evenly_and_do_not_collide():
    places = positions(slots=64, indices=16, steps=200)
    hashes = position_hash(*places.T)
    assert len(np.unique(hashes)) == len(hashes)
    for bits in (8, 32, 56):
        counts = np.bincount((hashes >> np.uint64(bits)).astype(np.int64) & 15, minlength=16)
        # Chi-square with 15 degrees of freedom: 50 has a chance of about 1e-5.
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 50


@pytest.mark.fast
def test_a_probe_that_saw_nothing_says_so():
    assert ProbeObserver(make_spec("fruitbot"), ProbeSettings()).finish() == {"probe_states": 0}


def play_cell(*, batch, settings, game="fruitbot"):
    spec = make_spec(game)
    cell = CellSpec(spec, Run(agent="linear"), "0", "sampled", "train", LEVELS, 0, Design(4, 1, 8))
    observer = ProbeObserver(spec, settings)
    kept = []
    finish = observer.finish
    observer.finish = lambda: kept.extend(observer.held()) or finish()
    player = Player(
        make_engine=lambda n: ProcgenEngine(game, slots=n, levels=LEVELS),
        actor=PolicyActor(small_policies.LinearPolicy(), name="linear", space=Discrete(15), noop=4),
        n_slots=batch,
    )
    plays = list(player.play([CellPlay(cell, observer)]))
    return plays[0], observer.finish(), kept


def test_the_record_does_not_depend_on_how_the_cell_was_played():
    settings = ProbeSettings(states=40, classes=shipped_classes("fruitbot").partition.labels)
    records = [play_cell(batch=batch, settings=settings)[1] for batch in (3, 8)]
    assert records[0] == records[1]


def test_the_record_is_what_its_states_say():
    game = shipped_classes("fruitbot").partition
    _, record, kept = play_cell(batch=4, settings=ProbeSettings(states=30, classes=game.labels))
    rows = np.stack([seen.probabilities for seen in kept])
    own = [partition_of(seen.state) for seen in kept]
    assert record["probe_states"] == len(kept) == 30
    assert record["k"] == 4
    assert record["entropy_probe"] == pytest.approx(entropy(rows).mean())
    assert record["merged_game"] == pytest.approx(merged_entropy(rows, game).mean())
    merged = [merged_entropy(rows[[row]], partition)[0] for row, partition in enumerate(own)]
    assert record["merged_state"] == pytest.approx(np.mean(merged))
    assert record["mean_ln_k"] == pytest.approx(np.mean([np.log(partition.k) for partition in own]))
    assert record["merged_state"] <= record["merged_game"] <= record["entropy_probe"]


def partition_of(state):
    """Outcomes of single actions in a one-slot engine."""
    engine = ProcgenEngine("fruitbot", slots=1, levels=LEVELS)
    numbers, labels = {}, []
    for action in range(15):
        engine.load(0, state)
        seen = b""
        for step in range(5):
            observations, rewards, firsts = engine.step(np.array([action if step == 0 else 4]))
            seen += observations.tobytes() + rewards.tobytes() + firsts.tobytes()
        labels.append(numbers.setdefault(seen, len(numbers)))
    engine.close()
    return Partition.from_labels(labels)


def test_without_the_game_s_classes_nothing_is_said_about_the_game():
    record = play_cell(batch=4, settings=ProbeSettings(states=5))[1]
    assert "merged_game" not in record
    assert "k" not in record


def test_a_cell_shorter_than_the_probe_is_probed_whole():
    play, record, _ = play_cell(batch=8, settings=ProbeSettings(states=100_000, horizon=1))
    assert record["probe_states"] == sum(outcome.length for outcome in play.finished())
