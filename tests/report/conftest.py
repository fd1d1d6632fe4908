"""The report of a store of the paper's shape, made once for the tests that look at its parts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests import paper_shaped
from tests.report.chromium import CHROMIUM, DRIVER
from tests.report.fixture_store import add_surroundings, write_store

from gapfloor.plan.lock import add_addendum, lock_plan
from gapfloor.report.source import ReportSource, load_report_source
from gapfloor.report.tables.build import EXTRA_TABLES
from gapfloor.report.write import WrittenReport, write_report


@pytest.fixture(scope="session")
def paper_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store: episodes, cell records, CKA results, logs, checkpoints' headers, replays."""
    root = tmp_path_factory.mktemp("paper") / "store"
    data = paper_shaped.load()
    write_store(root, data.episodes, data.cells)
    add_surroundings(root)
    return root


@pytest.fixture(scope="session")
def paper_plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's plan with its order of agents, locked after the first analysis as the paper says it was."""
    folder = tmp_path_factory.mktemp("plan")
    shipped = resources.files("gapfloor.plan") / "data"
    plan = folder / "plan.toml"
    text = (shipped / "paper.toml").read_text(encoding="utf-8")
    plan.write_text(text.replace("order = []", 'order = ["IMPALA", "FPN"]'), encoding="utf-8")
    addendum = folder / "merged.toml"
    addendum.write_text((shipped / "merged.toml").read_text(encoding="utf-8"), encoding="utf-8")
    lock_plan(plan, cells_seen=336, seen_in="declared")
    add_addendum(plan, addendum, cells_seen=0, seen_in="declared")
    return plan


@pytest.fixture(scope="session")
def paper_source(paper_store: Path, paper_plan_file: Path) -> ReportSource:
    """Everything that was read and analysed."""
    return load_report_source(paper_store, plan=paper_plan_file)


@pytest.fixture(scope="session")
def paper_report(paper_source: ReportSource, tmp_path_factory: pytest.TempPathFactory) -> WrittenReport:
    """The whole report, written."""
    return write_report(paper_source, tmp_path_factory.mktemp("report"), tables=EXTRA_TABLES)


@pytest.fixture(scope="session")
def one_game_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of one game at two budgets, with replays, training curves and levels: everything, but small."""
    root = tmp_path_factory.mktemp("one") / "store"
    data = paper_shaped.load()
    write_store(root, data.episodes, data.cells, games=("heist",))
    add_surroundings(root)
    return (
        write_report(load_report_source(root), root.parent / "report", formats=("html", "csv")).folder
        / "index.html"
    )


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium without a network."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install selenium")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
        "--no-first-run", f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(300)
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
    )
    yield driver
    driver.quit()
