"""Studies and plans of any content are read or refused in one sentence; nothing hangs and nothing is a traceback."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command_line import run
from gapfloor.errors import GapfloorError, UsageError
from gapfloor.plan.model import parse_plan
from gapfloor.settings import parse_toml
from gapfloor.study.model import Study

ROOT = Path(__file__).parents[2]
STUDY = (ROOT / "studies" / "demo.toml").read_text().replace("../agents", str(ROOT / "agents"))
PLAN = (ROOT / "src" / "gapfloor" / "plan" / "data" / "paper.toml").read_text()

#: Values that have broken readers: very large and very long ones, other types, odd names, broken numbers.
VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.text(max_size=20),
    st.sampled_from(
        ["", "..", "/", "a\0b", "n" * 300, "0:200", "all", "none", "merged", "temperature:1e-310"]
    ),
    st.lists(st.one_of(st.integers(-3, 3), st.text(max_size=5)), max_size=4),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


def as_toml(value: Any) -> str:
    """A value of TOML as text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f") if isinstance(value, str) else repr(value)


def changed(text: str, line: int, value: Any) -> str:
    """The text with another value in one of its settings."""
    lines = text.splitlines()
    at = [number for number, each in enumerate(lines) if " = " in each and not each.startswith("#")]
    number = at[line % len(at)]
    lines[number] = lines[number].split(" = ")[0] + " = " + as_toml(value)
    return "\n".join(lines)


def mutated(text: str, places: list[tuple[int, int]]) -> bytes:
    """The text with some of its bytes replaced."""
    content = bytearray(text.encode())
    for place, byte in places:
        content[place % len(content)] = byte
    return bytes(content)


def read_or_refuse(read: Callable[[], Any]) -> None:
    """Only an error of gapfloor's own may come out, with a message of bounded length."""
    message = ""
    try:
        read()
    except GapfloorError as error:
        message = str(error)
    assert len(message) < 2000


BOUNDED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MUTATIONS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6)


@BOUNDED
@given(line=st.integers(0, 50), value=VALUES)
def test_a_plan_with_any_value_is_read_or_refused(line: int, value: Any) -> None:
    read_or_refuse(lambda: parse_plan(changed(PLAN, line, value), source="plan.toml"))


@BOUNDED
@given(line=st.integers(0, 50), value=VALUES)
def test_a_study_with_any_value_is_read_or_refused(tmp_path: Path, line: int, value: Any) -> None:
    path = tmp_path / "study.toml"
    path.write_text(changed(STUDY, line, value), encoding="utf-8", errors="surrogatepass")
    read_or_refuse(lambda: Study.read(path))


@BOUNDED
@given(places=MUTATIONS, text=st.sampled_from([STUDY, PLAN]))
def test_a_damaged_study_or_plan_is_read_or_refused(
    tmp_path: Path, places: list[tuple[int, int]], text: str
) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(mutated(text, places))
    read_or_refuse(lambda: Study.read(path))


HOSTILE = {
    "deep lists": "name = " + "[" * 50_000,
    "deep tables": "name = " + "{a=" * 50_000,
    "a number of 5,000 digits": "name = " + "9" * 5_000,
    "a hexadecimal number of 10,000 digits": "name = 0x" + "f" * 10_000,
    "a dotted key of 100 KB": ".".join(["a"] * 50_000) + " = 1",
    "a quoted dotted key of 100 KB": ".".join(['"a"'] * 25_000) + " = 1",
    "a dotted table of 100 KB": "[" + ".".join(["a"] * 50_000) + "]",
    "a dotted key in an inline table": "name = {" + ".".join(["a"] * 50_000) + " = 1}",
    "a long key": "a" * 100_000 + " = 1",
    "a long string": 'name = "' + "a" * 100_000 + '"\nruns = 1',
    "a NUL in a path": STUDY.replace("name =", 'plan = "a\\u0000b"\nname =', 1),
    "a path of 5,000 characters": STUDY.replace("name =", f'plan = "{"n" * 5000}"\nname =', 1),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_study_or_plan_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text)
    for command in (("study", "status"), ("plan", "check")):
        done = run(capsys, *command, path)
        assert done.code == 2
        assert "Traceback" not in done.err
        assert len(done.err) < 1500


@pytest.mark.parametrize("kind", ["folder", "loop", "binary", "large"])
def test_what_is_not_a_text_file_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "study.toml"
    if kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "binary":
        path.write_bytes(b"\xff\xfe\x00name")
    else:
        path.write_text("# a comment\n" * 400_000)
    done = run(capsys, "study", "status", path)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_dots_in_text_are_not_mistaken_for_a_key() -> None:
    sentence = "This. Is. A. Long. Text. " * 15
    assert parse_toml(f'description = "{sentence}"', source="study.toml") == {"description": sentence}
    with pytest.raises(UsageError, match="more than 100 dots"):
        parse_toml(".".join("a" * 200) + " = 1", source="study.toml")
    assert tomllib.loads(PLAN) == parse_toml(PLAN, source="plan.toml")
