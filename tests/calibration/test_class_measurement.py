"""Classes of games: the paper's numbers, provenance, and play by a policy."""

import pytest

import small_policies
from gapfloor.calibration.class_measurement import classes_for, measure_classes
from gapfloor.calibration.classes import CalibrationSettings, load_classes, shipped_classes
from gapfloor.engines.procgen import make_spec
from gapfloor.errors import UsageError
from gapfloor.policies.load import PolicySource

#: Table "tab:merged" of the paper, column k.
PAPER_K = {
    "starpilot": 11, "fruitbot": 4, "bigfish": 9, "coinrun": 9, "miner": 5, "dodgeball": 10, "bossfight": 10,
    "heist": 9,
}  # fmt: skip

FEW = CalibrationSettings(states=40)


@pytest.mark.parametrize(("game", "k"), PAPER_K.items())
def test_the_paper_s_number_of_classes_is_measured(game, k):
    measured = measure_classes(make_spec(game))
    assert measured.k == k
    assert measured == shipped_classes(game)
    assert 1 <= measured.mean_state_k <= k


def test_fruitbot_s_classes_are_left_stay_right_and_throw():
    measured = measure_classes(make_spec("fruitbot"), FEW)
    assert measured.class_names == ("LEFT", "no-op", "RIGHT", "D")
    assert measured.partition.classes[0] == (0, 1, 2)


def test_the_matrix_counts_states_and_agrees_with_the_classes():
    measured = measure_classes(make_spec("coinrun"), FEW)
    labels = measured.partition.labels
    for first, row in enumerate(measured.equal_states):
        for second, equal in enumerate(row):
            assert equal == measured.equal_states[second][first]
            assert (equal == 40) == (labels[first] == labels[second])


def test_a_constant_policy_sees_other_states():
    source = PolicySource("constant", given=small_policies.constant_logits())
    random, visited = (measure_classes(make_spec("coinrun"), FEW, source=each) for each in (None, source))
    assert random.play == "random"
    assert len(visited.play) == 64
    assert random.equal_states != visited.equal_states


def test_a_store_s_classes_are_measured_once_and_then_read(tmp_path, monkeypatch):
    spec = make_spec("fruitbot")
    assert load_classes(tmp_path, spec) is None
    measured = classes_for(tmp_path, spec)
    assert load_classes(tmp_path, spec) == measured
    monkeypatch.setattr("gapfloor.calibration.class_measurement.measure_classes", None)
    assert classes_for(tmp_path, spec) == measured


def test_wrong_settings_are_refused_before_the_engine_sees_them():
    with pytest.raises(UsageError, match="out of range"):
        measure_classes(make_spec("fruitbot"), CalibrationSettings(seed=-1))
