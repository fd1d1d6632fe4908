"""The generated LaTeX compiles: an article of our own with all 113 keys and all sixteen tables."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.report.printed_results import printed_results
from tests.report.test_tables import SIXTEEN

from gapfloor.report.findings import Findings
from gapfloor.report.numbers import build_numbers, to_tex
from gapfloor.report.write import WrittenReport

DATA = Path(__file__).parent / "data"
needs_pdflatex = pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="needs pdflatex: apt-get install texlive-latex-base texlive-latex-recommended",
)


def compile_tex(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", name],
        cwd=folder, capture_output=True, text=True, errors="replace", timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.fast
def test_the_article_uses_every_key_and_every_table() -> None:
    source = (DATA / "article.tex").read_text(encoding="utf-8")
    keys = json.loads((DATA / "paper_keys.json").read_text(encoding="utf-8"))
    assert set(re.findall(r"\\N\{([^}]*)\}", source)) == set(keys)
    assert set(SIXTEEN) <= set(re.findall(r"\\input\{tables/([^}]*)\.tex\}", source))


@needs_pdflatex
def test_the_article_compiles_without_an_undefined_key(paper_report: WrittenReport, tmp_path: Path) -> None:
    shutil.copytree(paper_report.folder, tmp_path / "report")
    shutil.copy(DATA / "article.tex", tmp_path / "report")
    done = compile_tex(tmp_path / "report", "article.tex")
    assert done.returncode == 0, done.stdout[-3000:]
    assert (tmp_path / "report" / "article.pdf").stat().st_size > 50_000
    assert "undefined" not in done.stdout.replace("Font shape", "").lower().split("font warning")[0]
    assert "Overfull" not in done.stdout


@needs_pdflatex
def test_every_other_table_compiles_too(paper_report: WrittenReport, tmp_path: Path) -> None:
    names = [table.name for table in paper_report.made.tables]
    inputs = "\n".join(rf"\input{{tables/{name}.tex}}\clearpage" for name in names)
    packages = r"\usepackage{booktabs,amsmath,amssymb,graphicx}"
    shutil.copytree(paper_report.folder / "tables", tmp_path / "tables")
    (tmp_path / "all.tex").write_text(
        rf"\documentclass{{article}}{packages}\begin{{document}}{inputs}\end{{document}}", encoding="utf-8"
    )
    done = compile_tex(tmp_path, "all.tex")
    assert done.returncode == 0, done.stdout[-3000:]


@needs_pdflatex
def test_a_key_without_data_stops_latex_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "numbers.tex").write_text(
        to_tex(build_numbers(Findings(printed_results()))), encoding="utf-8"
    )
    (tmp_path / "a.tex").write_text(
        r"\documentclass{article}\input{numbers.tex}\begin{document}\N{miner.9M.s.test}\end{document}",
        encoding="utf-8",
    )
    done = compile_tex(tmp_path, "a.tex")
    assert done.returncode != 0
    assert "There is no number with the key 'miner.9M.s.test'" in done.stdout


@needs_pdflatex
def test_numbers_work_in_text_math_captions_and_titles(tmp_path: Path) -> None:
    (tmp_path / "numbers.tex").write_text(
        to_tex(build_numbers(Findings(printed_results()))), encoding="utf-8"
    )
    (tmp_path / "a.tex").write_text(
        r"\documentclass{article}\input{numbers.tex}\begin{document}\section{\N{d.heist.8M.s.test}}"
        r"\N{d.fruitbot.8M.s.test.ph} $x = \N{d.heist.8M.s.test}$"
        r"\begin{figure}\caption{\N{count.above.8M.s.word} and \N{cobbe.coinrun.8M.floor_test}}\end{figure}"
        r"\end{document}",
        encoding="utf-8",
    )
    for _ in range(2):
        done = compile_tex(tmp_path, "a.tex")
        assert done.returncode == 0, done.stdout[-2000:]
