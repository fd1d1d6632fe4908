"""Text that comes from the data, made harmless for LaTeX, Markdown, CSV, HTML and macro keys.

Game, agent and budget names are whatever a user's file says; none of them may become markup, a macro or a formula. HTML
is escaped by the page's template engine, which also passes text through `clean_text`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "–": "--",
    "—": "---",
    "−": r"$-$",
    "→": r"$\to$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "Δ": r"$\Delta$",
    "γ": r"$\gamma$",
    "λ": r"$\lambda$",
    "ε": r"$\epsilon$",
    "τ": r"$\tau$",
    "≤": r"$\le$",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "✓": r"\checkmark{}",
    # Letters that pdflatex has no glyph for unless the document changes its font encoding.
    "«": r"$\ll$",
    "»": r"$\gg$",
    **dict(zip("ÐĐðđĦħĸŦŧĿŀſ", "DDddHhkTtLls", strict=True)),
    "Ŋ": "Ng",
    "ŋ": "ng",
    "Þ": "Th",
    "þ": "th",
    "ŉ": "'n",
}
#: Letters with an ogonek, which the standard font encoding lacks too: the plain letter is printed.
_WITHOUT_GLYPH = frozenset("ĄąĘęĮįŲų")
#: Pairs that TeX's fonts print as one sign.
_LIGATURES = re.compile(r"(?<=-)-|(?<=`)`|(?<=')'|(?<=[?!])`")
#: What `\\`, `\midrule` and `\addlinespace` would take for an argument of theirs at the start of a row.
_STARTS_ARGUMENT = ("[", "*", "(")
#: An underscore between letters or digits is text in every Markdown of today, and names of code are full of them.
_MARKDOWN = re.compile(
    r"([\\`*{}\[\]<>|#~$&@]|(?<![a-z0-9])_|_(?![a-z0-9])|:(?=//)|(?<=www)\.)", re.IGNORECASE
)
_LIST_ITEM = re.compile(r"^(\d*)([-+.)])(?= )")
_KEY = re.compile(r"[^A-Za-z0-9.:+\-]")
_KEY_WITH_UNDERSCORE = re.compile(r"[^A-Za-z0-9.:+\-_]")
#: Starts of a cell that a spreadsheet takes for a formula; some also read the full-width signs as one.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def clean_text(text: str) -> str:
    r"""`text` on one line, with a space for each character that has no glyph: controls, direction marks, surrogates.

    >>> clean_text("a\nb\u202ec")
    'a b c'
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def printable_text(text: str) -> str:
    r"""`text` with its line breaks, and every other character that a terminal would obey written as an escape.

    >>> printable_text("a\x1b[2J")
    'a\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


@lru_cache(maxsize=1 << 14)  # the tables of a large study repeat a few labels a hundred thousand times
def escape_tex(text: str) -> str:
    r"""`text` so that pdflatex prints it as it is; characters that it has no glyph for become a question mark.

    >>> escape_tex("a_b & 50%"), escape_tex("a--b")
    ('a\\_b \\& 50\\%', 'a-{}-b')
    """
    return "".join(_tex_of(char) for char in _LIGATURES.sub(_guarded, clean_text(text))).replace(_GUARD, "{}")


def _guarded(match: re.Match[str]) -> str:
    return _GUARD + match[0]


#: Stands for an empty group while text is escaped; it is not printable, so clean text does not hold it.
_GUARD = "\x00"


def _tex_of(char: str) -> str:
    if char in _TEX:
        return _TEX[char]
    if char in _WITHOUT_GLYPH:
        return unicodedata.normalize("NFD", char)[0]
    return char if ord(char) < 0x180 else "?"


def guard_row(tex: str) -> str:
    r"""A row of LaTeX that follows `\\` or a rule: its first character is never taken for their argument.

    >>> guard_row("[x] & 1"), guard_row("x & 1")
    ('{}[x] & 1', 'x & 1')
    """
    return "{}" + tex if tex.lstrip().startswith(_STARTS_ARGUMENT) else tex


@lru_cache(maxsize=1 << 14)
def escape_markdown(text: str) -> str:
    r"""`text` so that Markdown, HTML inside Markdown, links, mentions and formulas see nothing of theirs.

    >>> escape_markdown("<b>|x_y _z_"), escape_markdown("http://a"), escape_markdown("1. a")
    ('\\<b\\>\\|x_y \\_z\\_', 'http\\://a', '1\\. a')
    """
    escaped = _MARKDOWN.sub(r"\\\1", " ".join(clean_text(text).split()))
    return _LIST_ITEM.sub(r"\1\\\2", escaped)


def markdown_code(text: str) -> str:
    """`text` as code in a paragraph of Markdown; a backtick, which would end it, becomes an apostrophe.

    >>> markdown_code("a_b | `c`")
    "`a_b | 'c'`"
    """
    return "`" + clean_text(text).replace("`", "'").strip() + "`"


def escape_csv(text: str) -> str:
    r"""`text` so that a spreadsheet shows it, does not compute it, and a terminal does not obey it.

    >>> escape_csv("=1+1"), escape_csv("heist\x1b[2J")
    ("'=1+1", 'heist [2J')
    """
    return f"'{clean_text(text)}" if text.startswith(_FORMULA) else clean_text(text)


def safe_key(text: str) -> str:
    r"""A budget or a rule as part of a macro key: as `key_part`, but underscores stay.

    >>> safe_key("temperature_0.5"), safe_key(r"8M}\input{x}")
    ('temperature_0.5', '8M--input-x-')
    """
    return _KEY_WITH_UNDERSCORE.sub("-", text)


def key_part(text: str) -> str:
    r"""A name as part of a macro key: only letters, digits and `. : + -` pass, the rest becomes `-`.

    >>> key_part("temperature:0.5"), key_part("my_game#2")
    ('temperature:0.5', 'my-game-2')
    """
    return _KEY.sub("-", text)
