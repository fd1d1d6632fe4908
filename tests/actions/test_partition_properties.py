"""What must hold of partitions, merged entropy and merged argmax whatever the numbers are."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapfloor.actions import Partition, entropy, merged_argmax, merged_entropy
from gapfloor.actions.partition import sum_within
from gapfloor.errors import UsageError
from gapfloor.statistics.screen import entropy_share

pytestmark = pytest.mark.fast

N_ACTIONS = 15


def partitions(n_actions=N_ACTIONS):
    labels = st.lists(st.integers(0, n_actions - 1), min_size=n_actions, max_size=n_actions)
    return labels.map(Partition.from_labels)


@st.composite
def distributions(draw, n_actions=N_ACTIONS):
    weights = draw(
        st.lists(
            st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), min_size=n_actions, max_size=n_actions
        ).filter(lambda values: sum(values) > 0)
    )
    row = np.array(weights)
    return (row / row.sum())[None, :]


@given(st.lists(partitions(), min_size=1, max_size=8))
def test_partitions_only_get_finer_as_states_are_added(found):
    together = [functools.reduce(Partition.meet, found[:count]) for count in range(1, len(found) + 1)]
    for coarser, finer in itertools.pairwise(together):
        assert finer.meet(coarser) == finer
        assert finer.k >= coarser.k
    assert all(together[-1].meet(each) == together[-1] for each in found)


@given(st.lists(partitions(), min_size=1, max_size=6), st.randoms())
def test_the_order_of_states_does_not_matter(found, random):
    shuffled = list(found)
    random.shuffle(shuffled)
    assert functools.reduce(Partition.meet, found) == functools.reduce(Partition.meet, shuffled)


@given(partitions(), partitions())
def test_the_meet_keeps_together_exactly_what_both_keep_together(one, other):
    met = one.meet(other)
    for first in range(N_ACTIONS):
        for second in range(N_ACTIONS):
            both = one.labels[first] == one.labels[second] and other.labels[first] == other.labels[second]
            assert (met.labels[first] == met.labels[second]) == both


@given(partitions())
def test_classes_and_labels_say_the_same(partition):
    assert Partition.from_classes(partition.classes) == partition
    assert Partition.from_classes(reversed(partition.classes)) == partition
    lowest = [members[0] for members in partition.classes]
    assert lowest == sorted(lowest)


@given(distributions(), partitions())
def test_merged_entropy_never_exceeds_the_raw_one_and_the_share_is_a_share(row, partition):
    raw, merged = float(entropy(row)[0]), float(merged_entropy(row, partition)[0])
    assert merged <= raw + 1e-12
    assert -1e-12 <= merged <= np.log(partition.k) + 1e-12
    # Below a thousandth of a nat the ratio of two rounding errors says nothing.
    if raw > 1e-3:
        assert -1e-9 <= entropy_share(merged, raw) <= 1 + 1e-9


@given(distributions(), partitions(), partitions())
def test_a_finer_partition_never_has_less_entropy(row, one, other):
    assert merged_entropy(row, one.meet(other))[0] >= merged_entropy(row, one)[0] - 1e-12


@given(distributions(), partitions())
def test_merging_loses_no_probability(row, partition):
    merged = sum_within(row, partition)
    assert merged.shape == (1, partition.k)
    assert np.isclose(merged.sum(), 1.0)


@given(distributions())
def test_merged_argmax_is_argmax_when_all_classes_are_single(row):
    assert merged_argmax(row, Partition(tuple(range(N_ACTIONS)))).tolist() == np.argmax(row, axis=1).tolist()


@given(distributions(), partitions())
@settings(max_examples=200)
def test_merged_argmax_is_the_best_action_of_the_best_class(row, partition):
    chosen = int(merged_argmax(row, partition)[0])
    sums = [sum(row[0, action] for action in members) for members in partition.classes]
    mine = partition.labels[chosen]
    assert sums[mine] >= max(sums) - 1e-12
    assert row[0, chosen] == max(row[0, action] for action in partition.classes[mine])


def test_ties_go_to_the_class_with_the_lowest_action_and_to_its_lowest_action():
    partition = Partition.from_classes([[1, 3], [0, 2]])
    assert merged_argmax(np.full((1, 4), 0.25), partition).tolist() == [0]
    assert merged_argmax(np.array([[0.1, 0.4, 0.1, 0.4]]), partition).tolist() == [1]


def test_several_weak_equal_actions_beat_one_strong_one():
    row = np.array([[0.4, 0.3, 0.3]])
    assert merged_argmax(row, Partition.from_classes([[0], [1, 2]])).tolist() == [1]


def test_a_row_is_merged_alike_whoever_its_companions_are():
    rows = np.random.default_rng(0).dirichlet(np.ones(N_ACTIONS), size=33)
    partition = Partition.from_classes([[0, 1, 2], [3, 4, 5, 10, 11, 12, 13, 14], [6, 7, 8], [9]])
    together = merged_entropy(rows, partition)
    alone = np.concatenate([merged_entropy(rows[[row]], partition) for row in range(len(rows))])
    assert together.tobytes() == alone.tobytes()


@pytest.mark.parametrize(
    ("classes", "message"),
    [([[0, 1], [1, 2]], "Action 1 is in two classes"), ([[0], [2]], "some action is missing")],
)
def test_something_that_is_not_a_partition_is_refused(classes, message):
    with pytest.raises(UsageError, match=message):
        Partition.from_classes(classes)
