"""Parts of a large page, compressed inside the file: a part becomes markup when its reader opens it.

A study of many games, budgets and agents has megabytes of figures and tables, of which a reader opens a few. A page
that is small enough holds everything as markup, which a browser's search finds without opening anything.
"""

from __future__ import annotations

import base64
import zlib

from markupsafe import Markup

#: Pages up to this many characters are not packed.
MOST_INLINE = 3_000_000

#: Shorter parts stay as they are.
_LEAST_PACKED = 4_096


class PageParts:
    """Collects the parts of a page while its template is rendered, and puts them in afterwards."""

    def __init__(self, *, most_inline: int = MOST_INLINE) -> None:
        self._most_inline = most_inline
        self._parts: list[str] = []

    def hold(self, part: Markup) -> Markup:
        """Keep a part; what stands for it holds a character that no text of a page has."""
        self._parts.append(str(part))
        return Markup(f"\0{len(self._parts) - 1}\0")

    def put_in(self, page: str, *, packed_note: Markup) -> str:
        """The page with its parts, packed if it would be too large; `packed_note` replaces its mark in that case."""
        is_packed = len(page) + sum(map(len, self._parts)) > self._most_inline
        pieces = page.split("\0")
        for at in range(1, len(pieces), 2):
            if pieces[at] == NOTE:
                pieces[at] = str(packed_note) if is_packed else ""
            else:
                part = self._parts[int(pieces[at])]
                pieces[at] = pack(part) if is_packed and len(part) > _LEAST_PACKED else part
        return "".join(pieces)


#: Stands between the marks where the page says that it is packed.
NOTE = "note"
PACKED_NOTE_PLACE = Markup(f"\0{NOTE}\0")


def pack(part: str) -> str:
    """A part that the page's script unpacks; the content of a template is not drawn."""
    packed = base64.b64encode(zlib.compress(part.encode("utf-8", "replace"), 9)).decode("ascii")
    return f'<template class="packed">{packed}</template>'


def unpack(packed: str) -> str:
    """The part again.

    >>> unpack(pack("<p>text</p>"))
    '<p>text</p>'
    """
    content = packed.removeprefix('<template class="packed">').removesuffix("</template>")
    return zlib.decompress(base64.b64decode(content)).decode("utf-8")
