"""Labels as codes: the same codes whatever the column's type, the order of rows or the size of its pieces."""

import numpy as np
import pyarrow as pa
import pytest

from gapfloor.analysis.inputs import combined_codes, label_codes, marked, numbered, stable_order

pytestmark = pytest.mark.fast

TEXTS = ["25M", "8M", None, " 8M ", "10", "2"]


def test_a_text_column_and_its_dictionary_give_the_same_codes() -> None:
    plain = pa.chunked_array([pa.array(TEXTS[:3]), pa.array(TEXTS[3:])])
    codes, names = label_codes(plain)
    assert names == ("2", "8M", "10", "25M", "")
    assert [names[code] for code in codes] == ["25M", "8M", "", "8M", "10", "2"]
    encoded = pa.chunked_array([chunk.dictionary_encode() for chunk in plain.chunks])
    again = label_codes(encoded)
    assert again[1] == names
    np.testing.assert_array_equal(again[0], codes)


def test_names_that_no_row_has_are_not_labels() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), pa.array(["absent", "here"]))
    assert label_codes(pa.chunked_array([column]))[1] == ("here",)


@pytest.mark.parametrize("kind", [pa.float64(), pa.int64(), pa.float32()])
def test_whole_numbers_are_the_same_label_in_every_type(kind: pa.DataType) -> None:
    codes, names = label_codes(pa.chunked_array([pa.array([3, 1, None, 3], kind)]))
    assert (codes.tolist(), names) == ([1, 0, 2, 1], ("1", "3", ""))


def test_combined_codes_are_ranks_in_the_order_of_the_labels_by_table_and_by_sort() -> None:
    rng = np.random.default_rng(3)
    labels = [
        (rng.integers(0, 7, 500), tuple("abcdefg")),
        (rng.integers(0, 40, 500), tuple(map(str, range(40)))),
    ]
    key = combined_codes(labels)
    pairs = sorted(set(zip(labels[0][0].tolist(), labels[1][0].tolist(), strict=True)))
    assert key.tolist() == [
        pairs.index(pair) for pair in zip(*(codes.tolist() for codes, _ in labels), strict=True)
    ]
    sparse = key * 1_000_003
    np.testing.assert_array_equal(numbered(sparse, int(sparse.max()) + 1), key)


def test_rows_with_the_same_key_stay_in_their_order_for_few_and_for_many_keys() -> None:
    key = np.random.default_rng(1).integers(0, 9, 300)
    for factor in (1, 10_000):
        np.testing.assert_array_equal(stable_order(key * factor), np.lexsort((np.arange(300), key)))


def test_marking_rows_drops_names_that_are_left_without_rows() -> None:
    codes, names = marked(
        (np.array([0, 1, 0], dtype=np.int8), ("", "random")), np.array([True, False, True]), "uniform"
    )
    assert [names[code] for code in codes] == ["uniform", "random", "uniform"]
    assert names == ("random", "uniform")
