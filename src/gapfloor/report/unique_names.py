"""Names that stay different when they are spelt with fewer characters: in file names, LaTeX labels and macro keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def unique_names(labels: Iterable[str], spell: Callable[[str], str]) -> dict[str, str]:
    """Each label as `spell` writes it; a later label whose spelling is taken gets a number.

    A label without a character that can be written is called "other".

    >>> unique_names(["8M", "25M", "8m"], str.lower)
    {'8M': '8m', '25M': '25m', '8m': '8m-2'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in dict.fromkeys(labels):
        plain = spell(label) or ("other" if label else "")
        name, number = plain, 2
        while name in taken:
            name, number = f"{plain}-{number}", number + 1
        taken.add(name)
        names[label] = name
    return names
