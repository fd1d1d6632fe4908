"""The names of `import gapfloor`: each exists, has types, and hides no folder of the package."""

import ast
import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import gapfloor
from gapfloor.api import analyse, audit_scan, load_policy, plot, report, train  # noqa: F401
from gapfloor.result_data import ResultData
from gapfloor.training import trainer  # noqa: F401

PACKAGE = Path(inspect.getfile(gapfloor)).parent
NAMES = set(gapfloor.__all__) - {"__version__"}


def test_the_stub_that_editors_read_has_the_same_names() -> None:
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    homes = {
        alias.asname: f"{node.module}".removeprefix("gapfloor.")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes == gapfloor._HOMES


def test_no_public_name_is_that_of_a_folder() -> None:
    folders = {path.name for path in PACKAGE.iterdir()} | {path.stem for path in PACKAGE.glob("*.py")}
    assert folders & NAMES == set()


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_argument_is_documented(name: str) -> None:
    item = getattr(gapfloor, name)
    assert item.__doc__
    if inspect.isclass(item):
        return
    for argument in inspect.signature(item).parameters:
        assert f"\n        {argument}: " in item.__doc__, f"{name} does not document {argument}"


@pytest.mark.parametrize("name", sorted(NAMES - {"load_policy", "plot"}))
def test_what_a_function_returns_becomes_a_table(name: str) -> None:
    item = getattr(gapfloor, name)
    if inspect.isclass(item):
        return
    hints = inspect.signature(item).return_annotation
    (kind,) = [
        each for each in _subclasses(ResultData) if each.__name__ == hints and dataclasses.is_dataclass(each)
    ]
    for method in ("to_dict", "to_arrow", "to_pandas", "plot"):
        assert callable(getattr(kind, method))


def test_names_of_the_command_line_are_those_of_python() -> None:
    """What a command takes, its function takes under the same name."""
    from gapfloor.cli.main import cli

    same = {
        "floor": "measure_floor", "evaluate": "evaluate", "sweep": "sweep", "compare": "compare",
        "training-curve": "training_curve", "train": "train", "calibrate": "calibrate", "replay": "replay",
        "analyse": "analyse", "report": "write_report",
    }  # fmt: skip
    # Names that a command spells differently: its output, what it makes of text, and flags with a `no`.
    other = {
        "as_json", "references", "leaks", "no_tensorboard", "floor_name", "rule_name", "out", "source", "file",
    }  # fmt: skip
    context = cli.make_context("gapfloor", ["floor"], resilient_parsing=True)
    for command, function in same.items():
        found = cli.get_command(context, command)
        assert found is not None
        taken = set(inspect.signature(getattr(gapfloor, function)).parameters)
        if "protocol" in taken:
            from gapfloor.play.protocol import ProtocolSettings

            taken |= set(ProtocolSettings.__annotations__)
        assert {str(option.name) for option in found.params} - taken - other == set(), command


def test_importing_gapfloor_takes_less_than_half_the_imports_of_one_function() -> None:
    def loaded(code: str) -> int:
        text = f"import sys\n{code}\nprint(len(sys.modules))"
        return int(subprocess.run([sys.executable, "-c", text], capture_output=True, check=True).stdout)

    assert loaded("import gapfloor") < loaded("import gapfloor; gapfloor.evaluate") / 2


def _subclasses(kind: type) -> list[type]:
    return [each for direct in kind.__subclasses__() for each in (direct, *_subclasses(direct))]
