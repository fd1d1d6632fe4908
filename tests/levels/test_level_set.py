import pytest

from gapfloor.errors import UsageError
from gapfloor.levels.schedule import LevelSet, check_disjoint

pytestmark = pytest.mark.fast


def test_a_range_is_half_open():
    levels = LevelSet.parse("1000:1100")
    assert levels.n == 100
    assert 1000 in levels
    assert 1100 not in levels


@pytest.mark.parametrize("text", ["0:200", "1000:1100", "all"])
def test_a_level_set_prints_as_it_is_written(text):
    assert str(LevelSet.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("200", "not a level set"),
        ("5:5", "is empty"),
        ("9:3", "is empty"),
        ("-1:4", "not a level set"),
        ("0:99999999999", "beyond the last level seed"),
    ],
)
def test_something_that_is_not_a_level_set_is_refused_in_words(text, words):
    with pytest.raises(UsageError, match=words):
        LevelSet.parse(text)


def test_overlapping_sets_are_refused_with_the_shared_levels():
    with pytest.raises(UsageError, match="share the levels 150:200"):
        check_disjoint(LevelSet(0, 200), LevelSet(150, 300))


def test_neighbouring_sets_are_disjoint():
    check_disjoint(LevelSet(0, 200), LevelSet(200, 300))


def test_everything_is_let_through_because_nothing_is_disjoint_from_it():
    check_disjoint(LevelSet(0, 200), LevelSet.parse("all"))
