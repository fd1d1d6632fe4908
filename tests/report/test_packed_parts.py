"""A large page is packed: it holds the same markup, unpacks a part when it is opened, and says how to open all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.report.chromium import needs_chromium, visit
from tests.report.printed_results import printed_results

from gapfloor.report.card import build_card
from gapfloor.report.findings import Findings
from gapfloor.report.packed_parts import unpack
from gapfloor.report.page import render_page
from gapfloor.report.source import source_of_results
from gapfloor.report.tables.build import build_tables

PACKED = re.compile(r'<template class="packed">[^<]*</template>')


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    results = printed_results()
    source = source_of_results(results)
    tables, card = build_tables(Findings(results)), build_card(source)
    return {
        name: render_page(source, tables, card, most_inline=most)
        for name, most in {"inline": 10**9, "packed": 0}.items()
    }


@pytest.mark.fast
def test_a_packed_page_holds_the_same_markup_in_less_space(pages: dict[str, str]) -> None:
    unpacked = PACKED.sub(lambda found: unpack(found[0]), pages["packed"])
    note = re.search(r'<p class="note" id="packed">.*?</noscript>', unpacked)
    assert note is not None
    assert unpacked.replace(note[0], "") == pages["inline"]
    assert len(pages["packed"]) < len(pages["inline"]) * 0.6
    assert 'id="packed"' not in pages["inline"]
    assert "\0" not in pages["packed"] + pages["inline"]


@pytest.fixture
def packed_page(pages: dict[str, str], tmp_path: Path) -> Path:
    path = tmp_path / "index.html"
    path.write_text(pages["packed"], encoding="utf-8")
    return path


def _wait(browser: Any, script: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20).until(lambda _: browser.execute_script(f"return {script}"))


@needs_chromium
def test_the_enter_key_opens_a_packed_table_that_can_be_sorted(browser: Any, packed_page: Path) -> None:
    from selenium.webdriver import Keys

    visit(browser, packed_page)
    table = browser.find_element("css selector", "details.table:not([open]):has(template.packed)")
    name = table.get_attribute("id")
    assert browser.execute_script("return arguments[0].querySelector('table')", table) is None
    table.find_element("tag name", "summary").send_keys(Keys.ENTER)
    _wait(browser, f"document.querySelector('#{name} tbody tr') !== null")
    head = table.find_element("css selector", "thead tr:last-child th")
    browser.execute_script("arguments[0].querySelector('button').click()", head)
    assert head.get_attribute("aria-sort") == "ascending"
    assert browser.get_log("browser") == []


@needs_chromium
def test_open_figures_are_unpacked_at_once_and_everything_by_one_button(
    browser: Any, packed_page: Path
) -> None:
    visit(browser, packed_page)
    _wait(browser, "document.querySelector('details.chart[open] [data-tip][tabindex=\\'0\\']') !== null")
    assert browser.execute_script("return document.querySelectorAll('template.packed').length") > 3
    browser.execute_script("document.getElementById('open-all').click()")
    _wait(browser, "document.querySelectorAll('template.packed').length === 0")
    _wait(browser, "document.querySelectorAll('details:not([open])').length === 0")
    n = browser.execute_script("return document.querySelectorAll('details.table table').length")
    assert n == browser.execute_script("return document.querySelectorAll('details.table').length")


@needs_chromium
def test_a_link_opens_and_unpacks_its_table(browser: Any, packed_page: Path, pages: dict[str, str]) -> None:
    name = re.findall(r'<details class="table[^"]*" id="(table-[^"]+)">', pages["packed"])[-1]
    visit(browser, packed_page)
    browser.execute_script(f"location.hash = '{name}'")
    _wait(browser, f"document.querySelector('#{name} table') !== null")


@needs_chromium
def test_axe_finds_no_violation_when_everything_is_open(browser: Any, packed_page: Path) -> None:
    axe = pytest.importorskip("axe_core_python.base", reason="needs axe-core: pip install axe-core-python")
    visit(browser, packed_page)
    browser.execute_script("document.getElementById('open-all').click()")
    _wait(browser, "document.querySelectorAll('template.packed').length === 0")
    browser.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    script = "axe.run(document, {resultTypes: ['violations']}).then(arguments[0])"
    found = browser.execute_async_script(script)["violations"]
    assert [(entry["id"], entry["nodes"][0]["html"][:200]) for entry in found] == []
