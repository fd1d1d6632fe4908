import warnings

import numpy as np
import pytest

import small_policies
from gapfloor.actions.spaces import Discrete
from gapfloor.engines.procgen import ProcgenEngine
from gapfloor.errors import PolicyError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.policies import notes
from gapfloor.policies.load import PolicySource
from gapfloor.policies.notes import PolicyWarning
from gapfloor.policies.policy import LogitsReader, as_policy, fingerprint
from gapfloor.policies.references import Constant, Sticky, Uniform, parse_reference


def reader(policy, n=2):
    return LogitsReader(as_policy(policy), name="mine", n_slots=n, space=Discrete(15))


def frames(n=2):
    return np.zeros((n, 64, 64, 3), dtype=np.uint8)


FIRST = np.ones(2, dtype=bool)
NO_LAST = np.full(150_000, -1)


@pytest.mark.fast
def test_uniform_takes_every_action_equally_often():
    chosen = Uniform().choose(np.random.default_rng(0).random(150_000), Discrete(15), NO_LAST)
    assert np.bincount(chosen, minlength=15) / 10_000 == pytest.approx(np.ones(15), abs=0.05)


@pytest.mark.fast
def test_sticky_play_repeats_its_last_action_as_often_as_it_says_and_is_uniform_otherwise():
    uniforms = np.random.default_rng(0).random(150_000)
    first = Sticky(0.9).choose(uniforms, Discrete(15), NO_LAST)
    assert np.bincount(first, minlength=15) / 10_000 == pytest.approx(np.ones(15), abs=0.05)
    then = Sticky(0.9).choose(uniforms, Discrete(15), np.full(150_000, 7))
    assert (then == 7).mean() == pytest.approx(0.9 + 0.1 / 15, abs=0.003)
    others = np.bincount(then, minlength=15)[np.arange(15) != 7]
    assert others / others.mean() == pytest.approx(np.ones(14), abs=0.15)
    with pytest.raises(UsageError, match="between 0 and 1"):
        parse_reference("sticky:1")


@pytest.mark.fast
def test_a_constant_reference_must_name_an_action_that_exists():
    with pytest.raises(UsageError, match="actions go from 0 to 14"):
        Constant("15").check(Discrete(15))
    with pytest.raises(UsageError, match="needs an action's number"):
        parse_reference("constant:left")
    with pytest.raises(UsageError, match="did you mean uniform"):
        parse_reference("unifrom")


@pytest.mark.fast
def test_logits_that_are_not_finite_are_reported_with_policy_and_step():
    ask = reader(small_policies.nan_logits())
    with pytest.raises(PolicyError, match=r"policy mine returned logits that are not finite at step 0"):
        ask.read(frames(), FIRST)


@pytest.mark.fast
def test_logits_of_the_wrong_shape_are_reported_with_both_shapes():
    with pytest.raises(PolicyError, match=r"shape \(2, 3\) at step 0: expected \(2, 15\)"):
        reader(small_policies.wrong_shape()).read(frames(), FIRST)


@pytest.mark.fast
def test_a_policys_own_failure_is_named_with_the_step():
    def fails(observations):
        raise ValueError("no such layer")

    with pytest.raises(PolicyError, match="mine failed at step 0: ValueError: no such layer"):
        reader(fails).read(frames(), FIRST)


@pytest.mark.fast
def test_a_policy_with_state_is_told_which_rows_start_an_episode():
    ask = reader(small_policies.CountingPolicy())
    for _ in range(4):
        ask.read(frames(), np.zeros(2, dtype=bool))
    logits = ask.read(frames(), np.array([True, False]))
    assert logits[0].argmax() == 0
    assert logits[1].argmax() == 1


@pytest.mark.fast
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module_anywhere:load", "does not import"),
        ("small_policies:lnear", "has no factory 'lnear'"),
        ("small_policies:broken", "weights file is missing"),
        ("nothing.here", "is not a policy that gapfloor can load"),
        ("missing.safetensors", "There is no checkpoint"),
    ],
)
def test_a_policy_that_cannot_be_loaded_is_refused_in_words(name, words):
    with pytest.raises(PolicyError, match=words):
        PolicySource(name).load()


@pytest.mark.fast
def test_something_that_is_not_a_policy_is_refused():
    with pytest.raises(PolicyError, match="int is not a policy"):
        as_policy(3)


def test_a_fingerprint_tells_contents_apart_not_names():
    def of(policy):
        engine = ProcgenEngine("coinrun", slots=8, levels=LevelSet(0, 200), draw=0)
        return fingerprint(as_policy(policy), name="any", engine=engine)

    assert of(small_policies.linear()) == of(small_policies.linear())
    assert of(small_policies.linear()) != of(small_policies.other_linear())


@pytest.mark.fast
def test_minus_infinity_masks_an_action_but_not_all_of_them():
    logits = np.zeros((2, 15), dtype=np.float32)
    logits[0, 3:] = -np.inf
    assert np.array_equal(reader(lambda seen: logits).read(frames(), FIRST), logits)
    for bad in (np.inf, np.nan):
        wrong = logits.copy()
        wrong[1, 0] = bad
        with pytest.raises(PolicyError, match=r"not finite at step 0 \(row 1\)"):
            reader(lambda seen, wrong=wrong: wrong).read(frames(), FIRST)
    with pytest.raises(PolicyError, match="not for every action of a row"):
        reader(lambda seen: np.full((2, 15), -np.inf)).read(frames(), FIRST)


@pytest.mark.fast
def test_rows_that_look_like_probabilities_give_one_warning():
    notes._SHOWN.clear()
    ask = reader(lambda seen: np.full((2, 15), 1 / 15))
    with pytest.warns(PolicyWarning, match="rows that add up to 1, like probabilities"):
        ask.read(frames(), FIRST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask.read(frames(), FIRST)
