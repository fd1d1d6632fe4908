"""A name that comes from a folder or a store is a path: it is never read as a policy's line or as code to import."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapfloor.errors import GapfloorError
from gapfloor.policies.formats.spec import CHECKPOINT, UNKNOWN, meaning_of
from gapfloor.policies.load import PolicySource
from gapfloor.users_code import users_frame

pytestmark = pytest.mark.fast

#: Names of files that are lines with a prefix and options if they are parsed.
LINES = ("sb3:model,trust=yes,key=a.zip", "cleanrl:a,agent=evil:Agent,trust=yes", "evil:make", "onnx:a.onnx")


@pytest.mark.parametrize("name", LINES)
def test_a_file_that_is_named_like_a_line_is_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).touch()
    Path("evil.py").write_text("raise SystemExit('it ran')\n")
    assert meaning_of(name).kind == UNKNOWN  # what a shell makes of `gapfloor evaluate *`
    with pytest.raises(GapfloorError):
        PolicySource(name).load()


@pytest.mark.parametrize(
    "name", ["hf:owner/name", "sb3:a.zip,trust=yes", "random-weights:impala:1", "evil:make"]
)
def test_a_path_is_a_path_whether_it_exists_or_not(name: str) -> None:
    assert meaning_of(Path(name)).kind == UNKNOWN
    assert meaning_of(Path(f"{name}.safetensors")).kind == CHECKPOINT


@pytest.mark.parametrize("name", ["torchscript:a.pt", "sb3:a.zip,no_such=1", "sb3:"])
def test_a_refused_name_is_shown_with_the_callers_line(name: str) -> None:
    with pytest.raises(GapfloorError) as refused:
        PolicySource(name)
    frame = users_frame(refused.value)
    assert frame is not None
    assert frame.filename == __file__  # the caller, and not what a dataclass generates
