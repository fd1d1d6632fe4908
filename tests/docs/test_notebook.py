"""The notebook runs from top to bottom on the real engine, and shows the tables and figures that are kept in it.

`python tests/docs/test_notebook.py` runs it and keeps the outputs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason='notebooks need: pip install "gapfloor[dev]"')
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("procgen")

PATH = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def run_notebook(folder: Path) -> Any:
    notebook = nbformat.read(PATH, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPLBACKEND", raising=False)  # EnvPool sets it when it is imported
        nbclient.NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        ).execute()
    return notebook


def outputs_of(notebook: Any) -> dict[str, list[Any]]:
    return {cell.source.splitlines()[-1]: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    return outputs_of(run_notebook(tmp_path_factory.mktemp("notebook")))


def shown(found: list[Any], kind: str) -> list[str]:
    return [output["data"][kind] for output in found if kind in output.get("data", {})]


def tables(found: list[Any]) -> list[str]:
    return [each["data"]["text/html"] for each in found if each["output_type"] == "execute_result"]


def test_the_tables_are_those_that_are_kept(outputs: dict[str, list[Any]]) -> None:
    kept = outputs_of(nbformat.read(PATH, as_version=4))
    for name in ("results", "floor", "result"):
        (table,) = tables(outputs[name])
        assert tables(kept[name]) == [table]
    assert "<th>reference</th>" in tables(outputs["floor"])[0]


def test_the_results_end_with_a_verdict(outputs: dict[str, list[Any]]) -> None:
    assert "below" in tables(outputs["results"])[0]


def test_a_figure_is_shown_once_and_kept(outputs: dict[str, list[Any]]) -> None:
    kept = outputs_of(nbformat.read(PATH, as_version=4))
    for name in ("result.plot()", "results.plot()"):
        assert len(shown(outputs[name], "image/png")) == len(shown(kept[name], "image/png")) == 1


def test_progress_is_one_line_with_the_floor(outputs: dict[str, list[Any]]) -> None:
    text = "".join(each["text"] for each in outputs["result"] if each["output_type"] == "stream")
    assert "\n" not in text
    *_, last = [line for line in text.split("\r") if line.strip()]
    assert last.startswith("192/192 episodes")
    assert "(floor " in last


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        made = run_notebook(Path(place))
    for made_cell in made.cells:  # without times, and without progress, which names them
        made_cell.metadata = {}
        if made_cell.cell_type == "code":
            made_cell.outputs = [
                each
                for each in made_cell.outputs
                if each["output_type"] == "execute_result" or "image/png" in each.get("data", {})
            ]
    nbformat.write(made, PATH)
