"""docs/replication.md says what its tool computes from the dataset, the paper's values and the study files."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import gapfloor
import replication_findings as findings
import replication_page as page
from gapfloor.plan.lock import load_plan
from gapfloor.study.model import Study

ROOT = Path(__file__).parents[2]


def test_the_pages_are_what_the_tool_makes_of_the_data():
    parts = page.build_parts()
    for name, held in page.PAGES.items():
        text = (ROOT / name).read_text()
        assert page.fill_in(text, {part: parts[part] for part in held}) == text


def test_the_report_of_the_miniature_is_made_from_its_dataset_under_the_locked_plan(tmp_path):
    written = gapfloor.report(page.DATA, out=tmp_path / "report", formats=("html", "card"), progress=False)
    text = (tmp_path / "report" / "index.html").read_text()
    assert "plan pre-registered" in text
    assert "30 runs" in text
    assert {"unmask", "tiers", "merged", "ckacontrol", "leaks"} <= {
        table.name for table in written.made.tables
    }


@pytest.mark.fast
@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        ("above", "above", "shown"),
        ("above", "not distinguishable", "not yet"),
        ("above", "below", "contradicted"),
        ("not distinguishable", "equivalent", "shown"),
        ("not distinguishable", "above", "contradicted"),
        ("below", "not tested", "not tested"),
    ],
)
def test_a_finding_is_judged_by_both_calls(paper, ours, verdict):
    assert findings.same_call(paper, ours) == verdict


@pytest.mark.fast
def test_a_difference_counts_only_where_its_test_does():
    assert findings.signed(-2.0, 0.01, -1) == "shown"
    assert findings.signed(2.0, 0.01, -1) == "contradicted"
    assert findings.signed(2.0, 0.2, -1) == "not yet"
    assert findings.signed(2.0, 0.2, 0) == "shown"
    assert findings.signed(2.0, 0.01, 0) == "contradicted"
    assert findings.signed(2.0, float("nan"), 1) == "not tested"


@pytest.mark.fast
@pytest.mark.parametrize(
    ("ours", "public", "untrained", "state"),
    [
        ("shown", None, "not yet", "shown"),
        ("shown", "shown", "shown", "shown, and by untrained networks"),
        ("shown", "contradicted", None, "mixed"),
        ("not yet", "contradicted", None, "contradicted"),
        ("not yet", "not tested", "shown", "not yet"),
        (None, "not tested", "shown", "no data"),
    ],
)
def test_the_state_of_a_finding_is_that_of_the_trained_agents(ours, public, untrained, state):
    verdicts = zip(findings.COLUMNS, (ours, None, public, untrained), strict=True)
    seen = {name: None if verdict is None else findings.Seen("", verdict) for name, verdict in verdicts}
    assert findings.Judged(None, seen).state == state


def test_the_cost_table_counts_the_cells_that_the_dataset_has():
    assert f"| 30 | {pq.read_metadata(page.DATA / 'cells.parquet').num_rows:,} |" in page.costs()


@pytest.mark.parametrize("name", ["paper-8m", "paper-25m"])
def test_the_papers_own_studies_have_a_locked_plan_and_cka(name):
    study = Study.read(ROOT / "studies" / f"{name}.toml")
    assert study.cka
    lock = load_plan(study.plan_path).lock
    assert (lock.plan.cells_seen, [each.name for each in lock.addenda]) == (0, ["merged argmax"])
