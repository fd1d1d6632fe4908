"""Whether a TorchScript program stays inside its tensors, judged by its text before anything of it runs.

Loading a program can already run parts of it, so the text is checked first. Of the operators that torch brings,
only `from_file` and `save` reach outside tensors; operators and classes of extensions could do anything. The search is
for words, wherever they stand, because a name can be written in many ways; a name that is not written out cannot be
checked and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: What may stand between two parts of a dotted name.
_GAP = r"(?:\s|#[^\n]*\n|\\\n)*"

#: Operators that reach outside tensors, operators of extensions, and classes of extensions.
_REACHES_OUT = re.compile(
    rf"(?:\btorch{_GAP}\.{_GAP})?\b(?:from_file|_?save(?:_\w+)?)\b"
    rf"|\btorch{_GAP}\.{_GAP}_?load\w*"
    rf"|\bops{_GAP}\.{_GAP}(?!prim\b|aten\b)\w+"
    rf"|__torch__{_GAP}\.{_GAP}torch{_GAP}\.{_GAP}classes"
)

#: The only form of getattr that torch writes: one plain text as the name, and never a collection of operators.
_PLAIN_GETATTR = re.compile(r'\bgetattr\((?!torch\b|ops\b)([\w.() ]*), "[^"\\\n]*"\)')

#: Classes of extensions in the program's data, which torch would build while it loads.
_CLASSES_IN_DATA = b"torch.classes"


def word_that_reaches_out(entries: Mapping[str, bytes]) -> str | None:
    """What in the entries of a TorchScript archive reaches outside tensors, or None.

    >>> word_that_reaches_out({"code/__torch__.py": b'return torch.from_file("x", True, 1)'})
    'torch.from_file'
    >>> word_that_reaches_out({"code/__torch__.py": b'return (getattr(self, "0")).forward(x)'}) is None
    True

    Raises:
        UnicodeDecodeError: when the program is not text.
    """
    for name, content in entries.items():
        # torch finds names in any case.
        if name.lower().endswith(".py"):
            found = _word_in_code(content.decode())
            if found is not None:
                return found
        elif _CLASSES_IN_DATA in content and name.lower().endswith(".pkl"):
            return _CLASSES_IN_DATA.decode()
    return None


def _word_in_code(code: str) -> str | None:
    reaching = _REACHES_OUT.search(code)
    if reaching is not None:
        return reaching.group(0)
    n_replaced = 1
    while n_replaced:  # from the inside out: getattr(getattr(self, "0"), "1")
        code, n_replaced = _PLAIN_GETATTR.subn("_", code)
    hidden = re.search(r"\bgetattr\b[^\n]{0,60}", code)
    return hidden.group(0) if hidden else None
