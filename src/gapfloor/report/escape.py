"""Text that comes from the data, made harmless for LaTeX, Markdown and macro keys.

Game, agent and budget names are whatever a user's file says; none of them may become markup. HTML is escaped by
the page's template engine, not here.
"""

from __future__ import annotations

import re

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
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#])")
_KEY = re.compile(r"[^A-Za-z0-9.:+\-]")


def clean_text(text: str) -> str:
    r"""`text` on one line, with a space for each character that has no glyph: controls, direction marks, surrogates.

    >>> clean_text("a\nb\u202ec")
    'a b c'
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def escape_tex(text: str) -> str:
    r"""`text` so that pdflatex prints it as it stands; characters outside Latin-1 become a question mark.

    >>> escape_tex("a_b & 50%")
    'a\\_b \\& 50\\%'
    """
    safe: list[str] = []
    for char in text:
        if char in _TEX:
            safe.append(_TEX[char])
        elif char in "\r\n\t" or not char.isprintable():
            safe.append(" ")
        elif ord(char) < 0x180:
            safe.append(char)
        else:
            safe.append("?")
    return "".join(safe)


def escape_markdown(text: str) -> str:
    r"""`text` so that neither Markdown nor HTML inside Markdown sees markup.

    >>> escape_markdown("<b>|x_y")
    '\\<b\\>\\|x\\_y'
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def key_part(text: str) -> str:
    r"""A name as part of a macro key: only letters, digits and `. : + -` pass, the rest becomes `-`.

    >>> key_part("temperature:0.5"), key_part("my_game#2")
    ('temperature:0.5', 'my-game-2')
    """
    return _KEY.sub("-", text)
