"""Find turns of phrase that a reader has to read twice.

`python tools/plain_english.py` counts the findings of each folder and fails if a folder that
`plain_english.toml` lists as clean has one. `--show FOLDER` prints the findings below a folder with their lines.
Python files are searched in strings, docstrings, comments and the names of functions and classes;
Markdown outside its code blocks; TOML files and templates as a whole.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFIGURATION = Path(__file__).with_suffix(".toml")
#: Where to look below the root of the repository; files next to them (README.md, pyproject.toml) are added.
FOLDERS = (
    "src", "tests", "docs", "research-notes", "docs_site", "benchmarks", "examples", "studies", "agents", "tools",
)  # fmt: skip
SUFFIXES = (".py", ".md", ".toml", ".j2")
#: These quote what is looked for.
SELF = ("tools/plain_english.py", "tools/plain_english.toml", "tests/docs/test_plain_english.py")


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """Something to look for, and what to say instead."""

    name: str
    instead: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A phrase in a file."""

    path: str
    line: int
    phrase: Phrase
    text: str

    @property
    def folder(self) -> str:
        """The folder that the finding is counted for: two levels deep below `src` and `tests`."""
        parts = self.path.split("/")[:-1]
        depth = {"src": 3, "tests": 2}.get(parts[0] if parts else "", 1)
        return "/".join(parts[:depth]) or "."


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Which folders and files must stay clean, and which phrases are meant."""

    clean: tuple[str, ...]
    allowed: tuple[tuple[str, str], ...]

    def allows(self, finding: Finding) -> bool:
        """Whether the phrase is listed for this file or for every file."""
        return any(
            where in ("", finding.path) and words.lower() in finding.text.lower()
            for where, words in self.allowed
        )

    def forbids(self, finding: Finding) -> bool:
        """Whether the folder or the file of a finding is listed as clean."""
        return finding.folder in self.clean or finding.path in self.clean


_NUMBER = r"(?:one|two|three|four|five|six|eight|ten|sixteen|several|many|few|\d+(?:[,.]\d+)*)"
_COUNTED = (
    "(?:episodes?|levels?|steps|states|rows?|seeds?|files?|cells|games|slots?|process(?:es)?|threads|workers?|"
    "seconds|minutes|bytes|frames?|lines?|numbers?|columns?|policies|observations|nats|entry|entries|pages?|"
    "environments|updates|checkpoints|repeats|times|ones|µs|ms|KB|MB|GB|words?|commands?|means?|values?|sentences?)"
)
_UNIT = (
    "(?:level set|level|sampled cell|cell|run|game|slot|draw|rule|policy|agent|core|row|step|state|file|second|"
    "minute|hour|episode|seed|budget|family|test|task|node|worker|process|pair|set|thing|comparison|condition|"
    "table|column|field|command|line|batch|update|checkpoint|study|encoder|repository|path|key|engine|reference|"
    "section|page|figure|folder|temperature|action|class|call|tier|bin|group|machine|host|kind|function|"
    "environment|observation|format|module|side|part|commit|window|block|permutation|replicate|value|point)"
)
_NOT_COUNTED = (
    "for|at|of|with|in|to|is|on|as|under|from|by|than|into|without|or|and|that|not|if|over|per|such|only|when|"
    "where|what|which|how|about|after|before|until|between|through|but"
)
#: `levels a page shows` leaves out a `that`, which is fine.
_NO_VERB = r"(?!-)(?!'s)(?! [a-z]+s\b)(?! (?:can|must|may|will|would|should)\b)"
_FINE_AFTER_NO = "longer|more|less|better|worse|fewer|one|doubt|matter|need|different|larger|smaller|wider"
_EMPHASIS = (
    "THE|NOT|ALL|ONLY|NEVER|EVERY|AND|OR|NO|MUST|SAME|ONE|IS|ARE|ANY|BOTH|THIS|ALWAYS|EACH|BEFORE|AFTER|BUT|"
    "CANNOT|MORE|LESS|ITS|OWN|VERY|WILL|SHOULD"
)


def _phrase(name: str, instead: str, pattern: str, *, flags: int = re.IGNORECASE) -> Phrase:
    return Phrase(name=name, instead=instead, pattern=re.compile(pattern, flags))


#: Text is searched with every run of white space as one space, so phrases are found across lines.
PHRASES = (
    _phrase(
        "a for per", "`per` or `for each`",
        rf"\b(?:{_NUMBER} (?:(?!(?:{_NOT_COUNTED})\b)[a-z-]+ )??|{_COUNTED} |a [a-z]+ )(?-i:an?) {_UNIT}\b{_NO_VERB}"
    ),
    _phrase("a for per", "`once per`", rf"\b(?:once|twice) an? {_UNIT}\b(?! (?:has|is|was|had)\b)"),
    _phrase(
        "as for e.g.", "`e.g.` or `such as`",
        r"[,;(] ?as (?:[`\"'“\d*]|--|[\w.]+[:=/][\w.])",
    ),
    _phrase(
        "is no", "`is not a`",
        rf"(?<!there )(?<!here )\b(?:is|are|was|were|be) no (?!(?:{_FINE_AFTER_NO})\b)[a-z`]",
    ),
    _phrase("likewise", "`also` or `in the same way`", r"\blikewise\b"),
    _phrase("anew", "`again`", r"\banew\b"),
    _phrase("beside", "`next to`, `with` or `compared with`", r"\bbeside\b"),
    _phrase("go on", "`continue` or `resume`", r"\b(?:go|goes|going|went) on\b(?! to\b)"),
    _phrase("as it stands", "`unchanged` or `literally`", r"\bas (?:it|they) (?:stands?|stood|lies?)\b"),
    _phrase("reckon", "`calculate`", r"\breckon(?:s|ed|ing)?\b"),
    _phrase("without a word", "what happened", r"\bwithout a word\b"),
    _phrase("put by", "`store`", r"\b(?:put|puts) (?:[a-z]+ ){1,3}by[.,;]"),
    _phrase("tell of", "`report`", r"\b(?:tells?|told) of\b"),
    _phrase("at hand", "`available` or `installed`", r"\bat hand\b"),
    _phrase("knows nobody", "what imports what", r"\bnobody knows\b|\bknows? (?:everyone|nobody)\b"),
    _phrase(
        "capitals", "the word without emphasis",
        rf"(?<![\w`\"'<{{/=:.\[|-])(?<![A-Z] )(?:{_EMPHASIS})(?![\w`\"'>}}/=:.\]|-])(?! [A-Z]{{2,}}\b)", flags=0,
    ),
)  # fmt: skip


def read_configuration(path: Path = CONFIGURATION) -> Configuration:
    """The list of clean folders and of allowed phrases."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return Configuration(
        clean=tuple(document["clean"]),
        allowed=tuple((entry.get("file", ""), entry["words"]) for entry in document.get("allowed", [])),
    )


def find(path: Path, *, root: Path) -> Iterator[Finding]:
    """The findings of one file."""
    source = path.read_text(encoding="utf-8")
    name = path.relative_to(root).as_posix()
    for first, text in _passages(source, path.suffix):
        words, lines = _collapse(text, first)
        for phrase in PHRASES:
            for match in phrase.pattern.finditer(words):
                around = words[max(0, match.start() - 30) : match.end() + 30]
                yield Finding(path=name, line=lines[match.start()], phrase=phrase, text=around)


def _passages(source: str, suffix: str) -> Iterator[tuple[int, str]]:
    """The parts of a file that a person reads as text, each with the line that it starts on."""
    if suffix == ".py":
        yield from _python_passages(source)
    elif suffix == ".md":
        yield from _paragraphs(re.sub(r"(?ms)^ *(```+|~~~+).*?^ *\1 *$", _only_lines, source))
    elif suffix == ".j2":
        yield 1, re.sub(r"(?s)<style.*?</style>|<script.*?</script>|<svg.*?</svg>", _only_lines, source)
    else:
        yield 1, re.sub(r"(?m)^\s*#+", "", source)


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Blocks of lines between empty lines; headings and rows of tables stand alone."""
    block: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if block and (not line.strip() or line.lstrip().startswith(("#", "|"))):
            yield number - len(block), "\n".join(block)
            block = []
        if line.strip():
            block.append(line)


def _only_lines(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _python_passages(source: str) -> Iterator[tuple[int, str]]:
    comment: list[str] = []
    start, is_name = 0, False
    strings = {tokenize.STRING} | {
        getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name)
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            start = start if comment else token.start[0]
            comment.append(token.string.lstrip("#: "))
            continue
        if token.type == tokenize.NL:
            continue
        if comment:
            yield start, "\n".join(comment)
            comment = []
        if token.type in strings:
            yield token.start[0], token.string
        elif is_name:
            yield token.start[0], token.string.strip("_").replace("_", " ")
        is_name = token.type == tokenize.NAME and token.string in ("def", "class")


def _collapse(text: str, first: int) -> tuple[str, list[int]]:
    """The text with single spaces, and the line number of each of its characters."""
    kept: list[str] = []
    lines: list[int] = []
    line = first
    for character in text:
        if character == "\n":
            line += 1
        if character.isspace():
            if kept and kept[-1] == " ":
                continue
            character = " "
        kept.append(character)
        lines.append(line)
    return "".join(kept), lines


def list_files(root: Path) -> list[Path]:
    """Every file that is searched, in order."""
    found = [path for folder in FOLDERS for path in (root / folder).rglob("*")]
    found += list(root.glob("*"))
    return sorted(
        path
        for path in found
        if path.suffix in SUFFIXES and path.is_file() and path.relative_to(root).as_posix() not in SELF
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, show and judge the findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--show", metavar="PATH", action="append", default=[], help="Print what is found below PATH."
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="The repository to search.")
    options = parser.parse_args(arguments)
    configuration = read_configuration()
    findings = [
        finding
        for path in list_files(options.root)
        for finding in find(path, root=options.root)
        if not configuration.allows(finding)
    ]
    errors = [finding for finding in findings if configuration.forbids(finding)]
    shown = [finding for finding in findings if any(finding.path.startswith(each) for each in options.show)]
    for finding in shown or errors:
        say = f"{finding.path}:{finding.line}: say {finding.phrase.instead}: ...{finding.text}..."
        sys.stdout.write(say + "\n")
    if not options.show:
        for folder, count in sorted(Counter(finding.folder for finding in findings).items()):
            sys.stdout.write(f"{count:6} {folder}\n")
        kinds = Counter(finding.phrase.name for finding in findings)
        sys.stdout.write(
            f"{len(findings):6} in all: " + ", ".join(f"{n} {name}" for name, n in kinds.most_common()) + "\n"
        )
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
