"""The examples in the docstrings of public names run as they are printed."""

import doctest
import os
from pathlib import Path

import pytest

import gapfloor

ROOT = Path(__file__).parents[2]
NAMES = sorted(set(gapfloor.__all__) - {"__version__"})


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_gives_what_it_prints(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    item = getattr(gapfloor, name)
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(item, name, globs={})
    assert example.examples, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)
    assert os.getcwd() == str(ROOT)
