"""Every number given to `gapfloor power` is used, or refused in one sentence; none is a bug or is searched for ever."""

import warnings

import pytest

from command_line import run

pytestmark = pytest.mark.fast

NUMBERS = {"--delta": "9", "--sem": "0.3", "--runs": "9", "--floor-sem": "0.1"}
OPTIONS = [*NUMBERS, "--family", "--power"]
REFUSED = [
    ("--delta", "nan"), ("--delta", "1e308"), ("--sem", "inf"), ("--sem", "1e200"), ("--floor-sem", "1e-308"),
]  # fmt: skip


def power(capsys, option, value):
    given = {**NUMBERS, option: value}
    return run(capsys, "power", *(f"{name}={number}" for name, number in given.items()))


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-1", "1e308", "1e-308"])
@pytest.mark.parametrize("option", OPTIONS)
def test_a_number_is_used_or_refused(capsys, option, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = power(capsys, option, value)
    assert done.code in (0, 2), done.err
    assert "nan" not in done.out
    assert "inf " not in done.out


@pytest.mark.parametrize(("option", "value"), REFUSED)
def test_a_number_that_cannot_be_computed_with_is_named(capsys, option, value):
    done = power(capsys, option, value)
    assert done.code == 2
    assert done.err.startswith("gapfloor: ")
    assert len(done.err.splitlines()) == 1
