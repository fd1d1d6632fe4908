"""TOML tables become dataclasses, and mistakes are named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from gapfloor.errors import UsageError
from gapfloor.settings import from_table, parse_toml, read_toml, to_table

pytestmark = pytest.mark.fast


@dataclass(frozen=True)
class Inner:
    alpha: float = 0.05
    method: Literal["welch", "paired t"] = "welch"


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner = field(default_factory=Inner)
    seeds: tuple[int, ...] = ()
    cuts: tuple[float, float] = (2.0, 2.3)
    games: dict[str, tuple[str, ...]] = field(default_factory=dict)
    note: str | None = None
    flag: bool = False


def read(text: str) -> Outer:
    return from_table(Outer, parse_toml(text, source="study.toml"), source="study.toml")


def test_tables_lists_and_nested_tables_are_read():
    outer = read('name = "a"\nseeds = [1, 2]\ncuts = [1, 2]\n[inner]\nalpha = 1\n[games]\n8M = ["heist"]')
    assert outer == Outer("a", Inner(alpha=1.0), (1, 2), (1.0, 2.0), {"8M": ("heist",)})
    assert isinstance(outer.inner.alpha, float)


def test_table_and_back_is_the_same():
    outer = Outer("a", Inner(0.1), (1,), (1.0, 2.0), {"8M": ("heist",)})
    assert from_table(Outer, to_table(outer), source="x") == outer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('nam = "a"', "study.toml has no setting 'nam': did you mean name?"),
        ('name = "a"\n[inner]\nalhpa = 1', "study.toml: inner has no setting 'alhpa': did you mean alpha?"),
        ("flag = true", "study.toml needs the setting 'name'"),
        ("name = 3", "study.toml: name must be a string, but is 3"),
        ('name = "a"\nflag = 1', "study.toml: flag must be true or false, but is 1"),
        ('name = "a"\nseeds = [1, true]', r"study.toml: seeds\[1\] must be a whole number, but is True"),
        ('name = "a"\nseeds = 1', "study.toml: seeds must be a list, but is 1"),
        ('name = "a"\ncuts = [1]', "study.toml: cuts must hold 2 values, but holds 1"),
        ('name = "a"\n[inner]\nmethod = "welsh"', "inner.method is 'welsh': did you mean welch?"),
        ('name = "a"\ninner = 3', "study.toml: inner must be a table, but is 3"),
        ('name = "a"\ngames = 3', "study.toml: games must be a table, but is 3"),
        ("name = ", "study.toml is not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_its_place(text, message):
    with pytest.raises(UsageError, match=message):
        read(text)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"There is no file .*plan\.toml"):
        read_toml(tmp_path / "plan.toml")
