"""File names and lines of a scanned repository stay text in the Markdown report, whatever they contain."""

import os
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from gapfloor.audit.judgement.formats import as_markdown, describe_unstated
from gapfloor.audit.ledger import RegistryEntry, compare_entries
from gapfloor.audit.scan import scan
from gapfloor.audit.trace.observe import ObservedPath, TraceResult
from gapfloor.escape import clean_text

EVALUATION = """
import gymnasium
from stable_baselines3 import PPO

model = PPO.load("model")
env = gymnasium.make("CartPole-v1")
obs, _ = env.reset()
while True:
    action, _ = model.predict(obs)
    obs, reward, done, truncated, info = env.step(action)  # `</code>` | <img src=x> [x](y)

def act(obs, deterministic):
    return obs
"""
NAMES = [
    "a|b", "`x`", "``x", "<img src=x>", "[x](http:y)", "![i](y)", "new\nline\n# title", "bell\x07\u202e", "1. x",
    "- x", "+ x", "*b* _i_ __b__ ~~s~~", "back\\slash\\|", "&lt;&amp;", "# x #", "www.a.b", "> x", "a_b_c",
]  # fmt: skip
RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def shape(markdown: str) -> list[str]:
    """The kinds of the elements that a Markdown text becomes."""
    kinds = []
    for token in RENDERER.parse(markdown):
        kinds.append(token.type)
        kinds += [child.type for child in token.children or () if child.type != "text"]
    return kinds


def reports(folder: Path, name: str) -> list[str]:
    repository = folder / name
    repository.mkdir(parents=True)
    (repository / f"{name}.py").write_text(EVALUATION)
    (repository / f"{name} old.py").write_text("print 'old'; env.step(a)\n")
    result = scan(str(repository), entry=None)
    assert result.paths
    assert result.unread
    assert result.inert_flags
    entry = RegistryEntry(name, name, name, None, name, name, None, ())
    path = ObservedPath(name, 1, name, name, "sampled", 1, 1, 1, False, (name,))
    trace = TraceResult((name,), 0, (path,), 0, (name,))
    return [
        as_markdown(result), compare_entries((entry,)), repr(trace),
    ]  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such file names")
@pytest.mark.parametrize("name", NAMES)
def test_a_name_does_not_become_markup(tmp_path: Path, name: str) -> None:
    for plain, hostile in zip(reports(tmp_path, "plain"), reports(tmp_path, name), strict=True):
        assert shape(hostile) == shape(plain)
        assert clean_text(hostile.replace("\n", "")) == hostile.replace("\n", "")


def test_names_of_code_are_readable_without_a_renderer(tmp_path: Path) -> None:
    assert "### evaluate_on_test.py" in reports(tmp_path, "evaluate_on_test")[0]


def test_a_failed_check_names_scripts_without_escape_characters(tmp_path: Path) -> None:
    (tmp_path / "eval\x1b[31m\x9b2J.py").write_text(EVALUATION)
    result = scan(str(tmp_path))
    assert result.paths
    for text in (describe_unstated(result.unstated()), repr(result)):
        assert not {"\x1b", "\x9b"} & set(text)
