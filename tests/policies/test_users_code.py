"""Errors in the user's own code are shown with file, line and text; modules are imported with clean arguments."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from gapfloor.actions.spaces import Discrete
from gapfloor.errors import PolicyError
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import LogitsReader, as_policy
from gapfloor.users_code import full_traceback

pytestmark = pytest.mark.fast


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the command is typed, and the name of a module that does not exist yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / f"users_{tmp_path.name.replace('-', '_')}.py"
    yield path
    sys.modules.pop(path.stem, None)


def refusal(path: Path, text: str, name: str = "make") -> PolicyError:
    path.write_text(text)
    with pytest.raises(PolicyError) as caught:
        PolicySource(f"{path.stem}:{name}").load()
    return caught.value


def test_an_error_of_a_factory_names_the_users_line(script: Path) -> None:
    error = refusal(script, "import json\n\ndef make():\n    return json.loads('{')\n")
    assert f"{script}:4" in str(error)
    assert "in `return json.loads('{')`" in str(error)
    assert "JSONDecodeError" in str(error)
    assert "\n" not in str(error)
    assert "json/decoder.py" in full_traceback(error)


def test_an_error_while_importing_names_the_users_line(script: Path) -> None:
    assert f"{script}:2" in str(refusal(script, "x = 1\ny = x / 0\n"))
    sys.modules.pop(script.stem, None)


def test_a_syntax_error_names_its_line(script: Path) -> None:
    assert f"SyntaxError: '(' was never closed ({script.name}, line 2) at {script}:2" in str(
        refusal(script, "x = 1\ny = (\n")
    )


def test_a_module_that_parses_arguments_when_imported_sees_none_of_ours(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["gapfloor", "evaluate", "mine:make", "--game", "coinrun"])
    script.write_text(
        "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
        "import sys\nseen = list(sys.argv)\ndef make():\n    return lambda x: x\n"
    )
    PolicySource(f"{script.stem}:make").load()
    assert sys.modules[script.stem].seen == [script.stem]
    assert sys.argv[1] == "evaluate"


def test_a_module_that_ends_the_program_is_the_users_error(script: Path) -> None:
    assert "ended the program while it was imported (exit code 3)" in str(
        refusal(script, "import sys\nsys.exit(3)\n")
    )


def test_a_misspelt_name_is_answered_with_the_nearest(script: Path) -> None:
    text = "def make():\n    return lambda x: x\n"
    assert "has no factory 'mkae': did you mean make?" in str(refusal(script, text, name="mkae"))


def test_an_error_during_play_names_the_users_line() -> None:
    def fails(observations: np.ndarray) -> np.ndarray:
        return observations @ np.zeros((7, 7))

    reader = LogitsReader(as_policy(fails), name="mine", n_slots=2, space=Discrete(3))
    with pytest.raises(
        PolicyError, match=r"mine failed at step 0: ValueError: .*test_users_code\.py:\d+ in `return"
    ):
        reader.read(np.zeros((2, 3)), np.ones(2, dtype=bool))
