"""The names of `import gapfloor`: each exists, is documented, and stays what it is whatever is imported."""

import dataclasses
import importlib
import inspect
import subprocess
import sys

import pytest

import gapfloor
from gapfloor.api import analyse, audit, cka, doctor, floor, plot, train  # noqa: F401
from gapfloor.api.keyword_settings import field_words, names_of, read_settings
from gapfloor.old_names import OLD_NAMES
from gapfloor.play.protocol import PlaySettings, ProtocolSettings
from gapfloor.tables.readable import ReadableResult

NAMES = set(gapfloor.__all__) - {"__version__"}
FUNCTIONS = sorted(name for name in NAMES if not inspect.isclass(getattr(gapfloor, name)))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_argument_is_documented(name: str) -> None:
    item = getattr(gapfloor, name)
    assert item.__doc__
    if inspect.isclass(item):
        return
    for argument in inspect.signature(item).parameters:
        assert f"\n    {argument}: " in inspect.cleandoc(item.__doc__), f"{name} does not document {argument}"


@pytest.mark.parametrize("name", sorted({"audit", "levels", "report"}))
def test_a_function_is_not_hidden_by_the_folder_of_its_name(name: str) -> None:
    folder = importlib.import_module(f"gapfloor.{name}")
    assert inspect.ismodule(folder)
    assert callable(getattr(gapfloor, name))
    assert not inspect.ismodule(getattr(gapfloor, name))


@pytest.mark.parametrize("name", sorted(OLD_NAMES))
def test_an_old_name_works_and_names_the_new_one(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"gapfloor.{name} goes away in the next version: use "):
        assert callable(getattr(gapfloor, name))
    assert name not in gapfloor.__all__


def test_an_old_argument_is_passed_on_under_its_new_name() -> None:
    with pytest.warns(DeprecationWarning, match="use gapfloor.floor instead"):
        old = gapfloor.measure_floor("maze", reference="constant:4", draws=0, episodes=16, progress=False)
    assert old == gapfloor.floor("maze", references=["constant:4"], draws=0, episodes=16, progress=False)


def test_settings_are_fields_of_one_dataclass_with_words_of_their_own() -> None:
    parameters = inspect.signature(gapfloor.evaluate).parameters
    for field in dataclasses.fields(PlaySettings):
        assert parameters[field.name].default == field.default
    assert set(field_words(PlaySettings)) == {field.name for field in dataclasses.fields(PlaySettings)}


def test_a_setting_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match="no argument 'epsiodes': did you mean episodes"):
        read_settings(ProtocolSettings, {"epsiodes": 16})
    assert names_of("a, b") == ["a", "b"]


@pytest.mark.parametrize("method", ["run", "status"])
def test_what_a_study_returns_prints_itself_and_becomes_a_table(method: str) -> None:
    importlib.import_module("gapfloor.study.commands")
    _check_result(inspect.signature(getattr(gapfloor.Study, method)).return_annotation)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"audit", "train"}))
def test_what_a_function_returns_prints_itself_and_becomes_a_table(name: str) -> None:
    for annotation in str(inspect.signature(getattr(gapfloor, name)).return_annotation).split(" | "):
        _check_result(annotation)


def _check_result(annotation: str) -> None:
    (kind,) = [
        each
        for each in _subclasses(ReadableResult)
        if each.__name__ == annotation and dataclasses.is_dataclass(each)
    ]
    assert not kind.__dataclass_params__.repr, "the dataclass's own repr hides the readable one"  # type: ignore[attr-defined]
    for method in ("to_dict", "to_arrow", "to_pandas", "plot", "report", "_repr_html_"):
        assert callable(getattr(kind, method))


def test_importing_gapfloor_takes_less_than_half_the_imports_of_one_function() -> None:
    def loaded(code: str) -> int:
        text = f"import sys\n{code}\nprint(len(sys.modules))"
        return int(subprocess.run([sys.executable, "-c", text], capture_output=True, check=True).stdout)

    assert loaded("import gapfloor") < loaded("import gapfloor; gapfloor.evaluate") / 2


def _subclasses(kind: type) -> list[type]:
    return [each for direct in kind.__subclasses__() for each in (direct, *_subclasses(direct))]
