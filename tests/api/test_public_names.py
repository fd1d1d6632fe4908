"""The names of `import gapfloor`: each exists, has types, and hides no folder of the package."""

import ast
import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import gapfloor
from api_pages import COMMANDS
from gapfloor.api import (  # noqa: F401
    analyse,
    audit_ledger,
    audit_scan,
    audit_trace,
    card,
    cka,
    engines,
    levels_gap,
    load_policy,
    plan_files,
    plot,
    report,
    train,
)
from gapfloor.api.card import MarkdownText
from gapfloor.study import commands, runner  # noqa: F401
from gapfloor.text_tables import ReadableResult
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


FUNCTIONS = sorted(name for name in NAMES if not inspect.isclass(getattr(gapfloor, name)))
#: What these return is not a table of results: an object, a figure, the path of a file, a text.
NO_TABLE = {"load_policy", "plot", "plan_init", "card_compare", "card_export"}


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - NO_TABLE))
def test_what_a_function_returns_prints_itself_and_becomes_a_table(name: str) -> None:
    _check_result(inspect.signature(getattr(gapfloor, name)).return_annotation)


@pytest.mark.parametrize("method", ["run", "status", "preview"])
def test_what_a_study_returns_prints_itself_and_becomes_a_table(method: str) -> None:
    _check_result(inspect.signature(getattr(gapfloor.Study, method)).return_annotation)


def _check_result(annotation: str) -> None:
    (kind,) = [
        each
        for each in _subclasses(ReadableResult)
        if each.__name__ == annotation and dataclasses.is_dataclass(each)
    ]
    assert not kind.__dataclass_params__.repr, "the dataclass's own repr hides the readable one"  # type: ignore[attr-defined]
    for method in ("to_dict", "to_arrow", "to_pandas", "plot", "_repr_html_"):
        assert callable(getattr(kind, method))


def test_text_that_a_function_returns_is_shown_as_markdown() -> None:
    assert MarkdownText("# A")._repr_markdown_() == "# A"


def test_every_command_has_its_function_or_method() -> None:
    """`gapfloor plan lock` is `plan_lock`, unless the table below says otherwise."""
    from gapfloor.cli.main import cli

    other = {
        "floor": "measure_floor", "report": "write_report", "verify": "verify_store", "levels check": "check_levels",
        "training-curve": "training_curve", "study run": "Study.run", "study status": "Study.status",
        "study preview": "Study.preview", "study clean": "Study.clean",
    }  # fmt: skip
    context = cli.make_context("gapfloor", ["floor"], resilient_parsing=True)
    for group in cli.list_commands(context):
        command = cli.get_command(context, group)
        subs = [f"{group} {sub}" for sub in getattr(command, "commands", {})] or [group]
        for words in subs:
            name, _, method = other.get(words, words.replace(" ", "_")).partition(".")
            assert name in NAMES, words
            assert not method or callable(getattr(getattr(gapfloor, name), method))
            assert COMMANDS[name] == group


def test_names_of_the_command_line_are_those_of_python() -> None:
    """What a command takes, its function takes under the same name."""
    from gapfloor.cli.main import cli

    same = {
        "floor": "measure_floor", "evaluate": "evaluate", "sweep": "sweep", "compare": "compare",
        "training-curve": "training_curve", "train": "train", "calibrate": "calibrate", "replay": "replay",
        "analyse": "analyse", "report": "write_report",
    }  # fmt: skip
    # Names that a command spells differently: its output, what it makes of text, flags with a `no`, and flags that are
    # functions of their own (known_floor).
    other = {
        "as_json", "references", "leaks", "no_tensorboard", "floor_name", "rule_name", "out", "source", "file",
        "known",
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
