"""The language check finds the phrases that style forbids and leaves ordinary English alone."""

from pathlib import Path

import pytest

import plain_english

pytestmark = pytest.mark.fast


def names_in(tmp_path: Path, text: str, name: str = "page.md") -> list[str]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return [finding.phrase.name for finding in plain_english.find(path, root=tmp_path)]


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Processes; default: one a core.", "a for per"),
        ("In a census: episodes a level.", "a for per"),
        ("Visited states a sampled cell that are cloned", "a for per"),
        ("give one seed\na policy", "a for per"),
        ("One word a thing", "a for per"),
        ("a row an agent and rule", "a for per"),
        ("found once a process and kept", "a for per"),
        ("the label, as 8M; default: none", "as for e.g."),
        ("write START:STOP (as 0:200)", "as for e.g."),
        ("'x' is no store", "is no"),
        ("Held-out levels, likewise.", "likewise"),
        ("measured anew", "anew"),
        ("classes are only shown beside", "beside"),
        ("the same command again goes on from here", "go on"),
        ("a pattern is taken as it stands", "as it stands"),
        ("A worker ended without a word", "without a word"),
        ("put their entropies by.", "put by"),
        ("Tell of the episodes that have been settled", "tell of"),
        ("uniform (THE floor)", "capitals"),
        ("This must NOT happen", "capitals"),
    ],
)
def test_a_forbidden_phrase_is_found(tmp_path: Path, sentence: str, name: str) -> None:
    assert names_in(tmp_path, sentence) == [name]


@pytest.mark.parametrize(
    "sentence",
    [
        "Number of worker processes (default: one per core).",
        "There is no store at this path.",
        "It is no longer needed.",
        "levels a page shows",
        "The levels of a game, as the paper says.",
        "The value goes on to the next step.",
        "`THE` is a word, GAPFLOOR_STORE a variable and JSON a format.",
        "It ends with a policy for a game.",
    ],
)
def test_ordinary_sentences_are_left_alone(tmp_path: Path, sentence: str) -> None:
    assert names_in(tmp_path, sentence) == []


def test_python_is_searched_where_people_read_and_markdown_outside_code(tmp_path: Path) -> None:
    code = '"""Rows\n\na game."""\nx = 1  # measured\n# anew\ndef one_row_a_level():\n    return f"{x} likewise"\n'
    assert names_in(tmp_path, code, "module.py") == ["a for per", "anew", "a for per", "likewise"]
    assert names_in(tmp_path, "```\nanew\n```\n\nlevels\n\n# A level\n") == []


def test_findings_name_their_line_and_folder(tmp_path: Path) -> None:
    path = tmp_path / "src" / "gapfloor" / "rules" / "deep" / "rule.py"
    path.parent.mkdir(parents=True)
    path.write_text('x = 1\n"""First.\n\nMeasured\nanew."""\n', encoding="utf-8")
    (finding,) = plain_english.find(path, root=tmp_path)
    assert (finding.line, finding.folder) == (5, "src/gapfloor/rules")


def test_clean_folders_stay_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert plain_english.main([]) == 0, capsys.readouterr().out
