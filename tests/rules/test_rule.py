import numpy as np
import pytest

from gapfloor.actions import Partition
from gapfloor.errors import UsageError
from gapfloor.rules.rule import (
    Epsilon,
    Greedy,
    Merged,
    Sampled,
    Temperature,
    draw_from,
    parse_rule,
    parse_rules,
    rule_forms,
    rule_kind,
    softmax,
)

pytestmark = pytest.mark.fast
LOGITS = np.log(np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]))


def frequencies(rule, logits, n=200_000):
    uniforms = np.random.default_rng(0).random(n)
    chosen = rule.choose(np.repeat(logits[None], n, axis=0), uniforms)
    return np.bincount(chosen, minlength=len(logits)) / n


def test_sampling_follows_the_distribution():
    assert frequencies(Sampled(), LOGITS[0]) == pytest.approx([0.5, 0.3, 0.2], abs=0.005)


def test_temperature_flattens_or_sharpens_it():
    hot = np.array([0.5, 0.3, 0.2]) ** 0.5
    assert frequencies(Temperature(2.0), LOGITS[0]) == pytest.approx(hot / hot.sum(), abs=0.005)


def test_epsilon_mixes_the_greedy_action_with_uniform_ones():
    assert frequencies(Epsilon(0.3), LOGITS[0]) == pytest.approx([0.8, 0.1, 0.1], abs=0.005)


def test_epsilon_never_takes_a_masked_action():
    logits = np.array([-np.inf, 1.0, -np.inf, 2.0])
    assert frequencies(Epsilon(0.4), logits) == pytest.approx([0, 0.2, 0, 0.8], abs=0.005)
    assert Epsilon(0.4).changed_distribution(logits[None])[0] == pytest.approx([0, 0.2, 0, 0.8])


def test_greedy_ties_go_to_the_lowest_action():
    assert Greedy().choose(np.array([[1.0, 3.0, 3.0]]), np.zeros(1)).tolist() == [1]


def test_merged_takes_the_best_class_then_its_best_action():
    partition = Partition.from_classes([[0], [1, 2]])
    logits = np.log(np.array([[0.4, 0.25, 0.35]]))
    assert Greedy().choose(logits, np.zeros(1)).tolist() == [0]
    assert Merged(partition).choose(logits, np.zeros(1)).tolist() == [2]


def test_merged_equals_greedy_when_no_actions_are_the_same():
    logits = np.random.default_rng(0).normal(size=(500, 15))
    merged = Merged(Partition(tuple(range(15)))).choose(logits, np.zeros(500))
    assert np.array_equal(merged, Greedy().choose(logits, np.zeros(500)))


def test_merged_ties_go_to_the_class_with_the_lowest_action():
    partition = Partition.from_classes([[0, 3], [1, 2]])
    assert Merged(partition).choose(np.zeros((1, 4)), np.zeros(1)).tolist() == [0]


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2**-53])
def test_the_ends_of_the_unit_interval_choose_possible_actions(uniform):
    probabilities = np.array([[0.0, 0.7, 0.3, 0.0]])
    assert draw_from(probabilities, np.array([uniform]))[0] in (1, 2)


def test_a_rows_choice_does_not_depend_on_the_other_rows():
    rng = np.random.default_rng(1)
    logits, uniforms = rng.normal(size=(64, 15)).astype(np.float32), rng.random(64)
    order = rng.permutation(64)
    for rule in (Sampled(), Greedy(), Epsilon(0.2), Temperature(0.5)):
        whole = rule.choose(logits, uniforms)
        assert np.array_equal(rule.choose(logits[order], uniforms[order]), whole[order])
        assert np.array_equal(rule.choose(logits[:7], uniforms[:7]), whole[:7])
    assert np.array_equal(softmax(logits[order]), softmax(logits)[order])


@pytest.mark.parametrize(
    "text",
    [
        "sampled",
        "greedy",
        "epsilon:0.05",
        "temperature:0.5",
        "temperature:0.1234573",
        "temperature:0.12345678",
        "epsilon:0.30000000000000004",
    ],
)
def test_a_rule_prints_as_it_is_written(text):
    assert str(parse_rule(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sampeld", "did you mean sampled"),
        ("argmax", "called 'greedy' here"),
        ("epsilon:x", "needs a number"),
        ("epsilon:0", "out of range"),
        ("epsilon:1.5", "out of range"),
        ("temperature:-1", "out of range"),
        ("temperature:inf", "out of range"),
        ("temperature:1e-310", "out of range"),
    ],
)
def test_something_that_is_not_a_rule_is_refused_in_words(text, words):
    with pytest.raises(UsageError, match=words):
        parse_rule(text)


def test_merged_without_the_games_classes_says_how_to_measure_them():
    with pytest.raises(UsageError, match="run gapfloor calibrate"):
        parse_rule("merged").bind(None)


def test_every_rule_of_the_package_is_found_and_says_whether_it_draws():
    draws = {form: not rule_kind(form).is_deterministic for form in rule_forms()}
    assert draws == {
        "sampled": True, "greedy": False, "merged": False, "epsilon:E": True, "temperature:T": True,
        "own": True,
    }  # fmt: skip


def test_a_rule_named_twice_is_refused():
    with pytest.raises(UsageError, match="named twice"):
        parse_rules("greedy,greedy")
