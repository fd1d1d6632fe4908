"""The page in a real Chromium: it loads with the network off, sorts, tells, plays, and runs nobody's markup."""

from __future__ import annotations

import base64
import dataclasses
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from tests.report.chromium import needs_chromium, visit
from tests.report.printed_results import printed_results, without

from gapfloor.report.card import build_card
from gapfloor.report.page import render_page
from gapfloor.report.source import source_of_results
from gapfloor.report.tables.build import build_tables
from gapfloor.report.write import WrittenReport

EVIL = "<script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def page(paper_report: WrittenReport) -> Path:
    return paper_report.folder / "index.html"


@needs_chromium
def test_it_loads_offline_without_an_error_and_asks_no_host(browser: Any, page: Path) -> None:
    visit(browser, page)
    assert browser.get_log("browser") == []
    asked = [
        entry["message"]
        for entry in browser.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"]
    ]
    assert asked
    assert not [message for message in asked if '"url":"http' in message.replace(" ", "")]
    assert "gaps measure?" in browser.find_element("tag name", "h1").text


@needs_chromium
def test_the_verdict_comes_first_and_says_rule_and_floor(browser: Any, page: Path) -> None:
    visit(browser, page)
    first = browser.find_element("css selector", "main section")
    assert first.get_attribute("id") == "verdicts"
    miner = next(
        card for card in browser.find_elements("css selector", ".card") if card.text.startswith("miner")
    ).text
    assert "sampled" in miner
    assert "floor of 1.17" in miner
    assert "worse than random play" in miner


@needs_chromium
def test_a_click_on_a_head_sorts_and_a_third_restores(browser: Any, page: Path) -> None:
    visit(browser, page)
    table = browser.find_element("css selector", "#table-unmask table")

    def column(at: int) -> list[str]:
        script = (
            "return Array.from(arguments[0].tBodies[0].rows).map(r => r.cells[arguments[1]].dataset.sort)"
        )
        return list(browser.execute_script(script, table, at))

    heads = table.find_elements("css selector", "thead tr:last-child th")
    before = column(0)
    button = heads[2].find_element("tag name", "button")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button)
    button.click()
    values = [float(value) for value in column(2)]
    assert values == sorted(values)
    assert heads[2].get_attribute("aria-sort") == "ascending"
    button.click()
    values = [float(value) for value in column(2)]
    assert values == sorted(values, reverse=True)
    button.click()
    assert column(0) == before


@needs_chromium
def test_hover_and_focus_show_a_marks_numbers(browser: Any, page: Path) -> None:
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.support.ui import WebDriverWait

    visit(browser, page)
    mark = browser.find_element("css selector", ".card .mark")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", mark)
    tip = browser.find_element("id", "tip")

    def tip_after_hovering(_: Any) -> bool:
        # The scrolling above ends after the call has returned, and scrolling hides a tip.
        ActionChains(browser).move_to_element_with_offset(mark, 40, 40).move_to_element(mark).perform()
        return bool(tip.is_displayed())

    WebDriverWait(browser, 20).until(tip_after_hovering)
    assert "held-out" in tip.text
    assert tip.text == mark.get_attribute("data-tip")
    first, second = browser.find_elements("css selector", "#figures [data-tip]")[:2]
    browser.execute_script("arguments[0].focus()", first)
    WebDriverWait(browser, 10).until(lambda _: tip.text == first.get_attribute("data-tip"))
    ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
    WebDriverWait(browser, 10).until(lambda _: tip.text == second.get_attribute("data-tip"))
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not tip.is_displayed()


@needs_chromium
def test_a_figure_is_one_stop_of_the_tab_key(browser: Any, page: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    visit(browser, page)
    stops = "return document.querySelectorAll(arguments[0] + ' [data-tip][tabindex=\\'0\\']').length"
    figures = "return document.querySelectorAll('.chart').length"
    assert browser.execute_script(figures) > 5
    WebDriverWait(browser, 20).until(
        lambda _: browser.execute_script(stops, ".chart") == browser.execute_script(figures)
    )
    n_strips = len(browser.find_elements("css selector", ".strip"))
    assert browser.execute_script(stops, ".strip") == n_strips


@needs_chromium
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_violation(browser: Any, one_game_page: Path, width: int, theme: str) -> None:
    axe = pytest.importorskip("axe_core_python.base", reason="needs axe-core: pip install axe-core-python")
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    visit(browser, one_game_page, width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        "axe.run(document, {resultTypes: ['violations']}).then(arguments[0])"
    )["violations"]
    assert [(entry["id"], entry["impact"], entry["nodes"][0]["html"][:200]) for entry in found] == []
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@needs_chromium
def test_tables_link_to_files_that_exist(browser: Any, page: Path) -> None:
    visit(browser, page)
    links = [link.get_attribute("href") for link in browser.find_elements("css selector", ".files a")]
    assert links
    assert all(Path(unquote(urlparse(link).path)).is_file() for link in links)


@needs_chromium
def test_a_card_shows_its_call_and_its_numbers(browser: Any, page: Path) -> None:
    visit(browser, page)
    card = browser.find_element("css selector", "#game-heist-8m")
    assert card.find_element("css selector", ".badge").text == "not distinguishable"
    names = [name.text for name in card.find_elements("css selector", ".numbers dt")]
    assert names == ["Return", "Floor", "Return − floor", "Gap", "Floor's gap"]


@needs_chromium
def test_every_permalink_leads_somewhere_and_the_theme_can_be_chosen(browser: Any, page: Path) -> None:
    visit(browser, page)
    lost = browser.execute_script(
        "return Array.from(document.querySelectorAll('.permalink')).map(a => a.hash.slice(1))"
        ".filter(id => !document.getElementById(id))"
    )
    assert lost == []
    button = browser.find_element("id", "theme")
    colour = "return getComputedStyle(document.body).backgroundColor"
    seen = []
    for name in ("light", "dark"):
        button.click()
        assert button.text == f"Theme: {name}"
        seen.append(browser.execute_script(colour))
    button.click()
    assert len(set(seen)) == 2


@needs_chromium
def test_the_print_has_two_pages_at_most(browser: Any, one_game_page: Path) -> None:
    visit(browser, one_game_page)
    printed = base64.b64decode(
        browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    )
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2


@needs_chromium
def test_no_name_in_a_figure_is_cut(browser: Any, page: Path) -> None:
    visit(browser, page)
    cut = browser.execute_script(
        "return Array.from(document.querySelectorAll('.chart svg')).flatMap(svg => {"
        "  const box = svg.getBoundingClientRect();"
        "  return Array.from(svg.querySelectorAll('text')).filter(t => { const r = t.getBoundingClientRect();"
        "    return r.width && (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 ||"
        "      r.bottom > box.bottom + 1); }).map(t => t.textContent); })"
    )
    assert cut == []


@needs_chromium
def test_replays_play_pause_and_share_one_clock(browser: Any, page: Path) -> None:
    visit(browser, page)
    scene = browser.find_element("css selector", ".scene")
    assert [line.text.split()[0] for line in scene.find_elements("css selector", ".clip p")] == [
        "sampled", "greedy", "random",
    ]  # fmt: skip
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser, 10)
    canvases = scene.find_elements("tag name", "canvas")
    start = scene.get_attribute("data-start")
    assert int(start) > 0
    wait.until(lambda _: all(canvas.get_attribute("data-shown") == start for canvas in canvases))
    play = scene.find_element("css selector", ".play")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", play)
    shown_first = browser.execute_script(
        "arguments[0].click(); return arguments[1].dataset.shown", play, canvases[1]
    )
    assert shown_first == "0"
    wait.until(lambda _: int(canvases[1].get_attribute("data-shown")) >= 3)
    play.click()
    stopped = canvases[1].get_attribute("data-shown")
    assert play.text == "Play"
    # At the end the short clip keeps its last frame while the long one continues.
    seek = scene.find_element("css selector", ".seek")
    browser.execute_script(
        "arguments[0].value = arguments[0].max; arguments[0].dispatchEvent(new Event('input'))", seek
    )
    shown = [int(canvas.get_attribute("data-shown")) for canvas in canvases]
    frames = [int(canvas.get_attribute("data-frames")) for canvas in canvases]
    assert shown == [frame - 1 for frame in frames]
    assert shown[0] < shown[1]
    assert int(stopped) < shown[1]
    assert len(scene.find_elements("css selector", ".clip.is-ended")) == len(canvases)
    pixels = browser.execute_script(
        "const d = arguments[0].getContext('2d').getImageData(0, 0, 64, 64).data; return Math.max(...d.slice(0, 4096))",
        canvases[0],
    )
    assert pixels > 0


@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(browser: Any, page: Path, width: int) -> None:
    visit(browser, page, width=width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def evil_page(folder: Path) -> Path:
    """A page whose every name from the data is a script."""
    full = printed_results()

    def renamed(rows: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dataclasses.replace(row, game=EVIL) for row in rows if row.game == "heist")

    results = without(
        full,
        source=dataclasses.replace(full.source, games=(EVIL,), agents=(EVIL,)),
        plan=dataclasses.replace(full.plan, name=EVIL),
        **{name: renamed(getattr(full, name)) for name in ("floors", "floor_comparisons", "gaps", "screen", "pairs")},
        agents=tuple(dataclasses.replace(row, agent=EVIL) for row in renamed(full.agents)),
        encoders=(), normalised=(), disagreements=(),
    )  # fmt: skip
    source = source_of_results(results, name=f"{EVIL.replace('/', '')}.csv")
    path = folder / "evil.html"
    path.write_text(render_page(source, build_tables(source), build_card(source)), encoding="utf-8")
    return path


@pytest.mark.fast
def test_names_are_escaped_wherever_they_stand(tmp_path: Path) -> None:
    text = evil_page(tmp_path).read_text(encoding="utf-8")
    assert text.count("<script>") == 1
    assert "&lt;script&gt;" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
