"""The notebook tutorial runs from top to bottom on the real engine, and shows tables, figures and its progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason='notebooks need: pip install "gapfloor[dev]"')
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("procgen")

PATH = Path(__file__).parents[2] / "docs" / "tutorial-notebook.ipynb"


def test_no_output_is_committed() -> None:
    cells = json.loads(PATH.read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    notebook = nbformat.read(PATH, as_version=4)
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPLBACKEND", raising=False)  # EnvPool sets it when it is imported
        nbclient.NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        ).execute()
    return {cell.source.splitlines()[-1]: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def _kinds(found: list[Any]) -> set[str]:
    return {kind for output in found for kind in output.get("data", {})}


def test_results_show_themselves_as_tables(outputs: dict[str, list[Any]]) -> None:
    for name in ("floor", "result", "results"):
        assert "text/html" in _kinds(outputs[name])
    (shown,) = [each for each in outputs["floor"] if each["output_type"] == "execute_result"]
    assert "<th>reference</th>" in shown["data"]["text/html"]


def test_a_figure_is_shown_once(outputs: dict[str, list[Any]]) -> None:
    for name in ("result.plot()", "results.plot()"):
        assert sum("image/png" in each.get("data", {}) for each in outputs[name]) == 1


def test_progress_is_one_line_with_the_floor(outputs: dict[str, list[Any]]) -> None:
    (line,) = [each for each in outputs["result"] if each["output_type"] == "display_data"]
    text = line["data"]["text/plain"]
    assert text.startswith("384/384 episodes")
    assert "(floor " in text
