"""The site has a page per public name, with every argument and the example that the tests run."""

from __future__ import annotations

import inspect

import pytest

import gapfloor
from api_pages import api_pages, command_of
from gapfloor.cli.commands import COMMANDS

NAMES = sorted(set(gapfloor.__all__) - {"__version__"})


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return api_pages()


def test_every_public_name_has_a_page_and_a_line_in_the_index(pages: dict[str, str]) -> None:
    assert set(pages) == {"api/index.md", *(f"api/{name}.md" for name in NAMES)}
    for name in NAMES:
        assert f"[`{name}`]({name}.md)" in pages["api/index.md"]


def test_a_page_names_every_argument_and_shows_the_example(pages: dict[str, str]) -> None:
    for name in NAMES:
        page, item = pages[f"api/{name}.md"], getattr(gapfloor, name)
        assert "```pycon" in page
        if not inspect.isclass(item):
            for argument in inspect.signature(item).parameters:
                assert f"- `{argument}`: " in page


def test_the_command_that_a_page_names_exists() -> None:
    known = {words.split()[0] for words in COMMANDS}
    assert {command_of(name) for name in NAMES} - known == {""}
