"""How a number is printed: one `Cell` knows its plain text, its LaTeX and the raw values behind it.

The paper's formats are kept in one place: returns with two decimals, differences with their sign, z with one
decimal, small p as powers of ten, counts as words. A number that does not exist prints as a dash and stays empty
in CSV; it is never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gapfloor.escape import escape_tex
from gapfloor.settings import shipped

Raw = float | int | str | None

#: Below this, a p value is printed as a bound.
SMALLEST_P = 1e-30


@dataclass(frozen=True)
class Cell:
    """One entry of a table, or one number of a text."""

    plain: str
    """Text with typographic signs, for Markdown, the page and the terminal. Not escaped."""
    tex: str
    """LaTeX, ready to print."""
    raw: tuple[Raw, ...]
    """The unrounded values, one per CSV column."""

    @property
    def typed(self) -> str:
        """The plain text with a minus that can be copied into a program."""
        return self.plain.replace("−", "-")

    @property
    def sort(self) -> Raw:
        """What a column is sorted by: the first raw value."""
        return self.raw[0] if self.raw else None


def text_cell(text: str, *, tex: str | None = None, raw: Raw = None) -> Cell:
    """Words; LaTeX is escaped unless `tex` gives it."""
    return Cell(text, escape_tex(text) if tex is None else tex, (text if raw is None else raw,))


def empty_cell(columns: int = 1) -> Cell:
    """An entry that the layout leaves blank."""
    return Cell("", "", (None,) * columns)


def missing_cell(columns: int = 1) -> Cell:
    """An entry for which there are no data."""
    return Cell("–", "--", (None,) * columns)


def fixed(value: float | None, decimals: int = 2, *, sign: bool = False) -> Cell:
    """A number with that many decimals; `sign` also prints the plus."""
    if value is None or not is_number(value):
        return missing_cell()
    return _in_math(f"{value:{'+' if sign else ''}.{decimals}f}", value)


def bare(value: float | None, decimals: int = 2) -> Cell:
    """A number outside math mode, as the paper's normalised scores and CKA values are printed."""
    cell = fixed(value, decimals)
    return replace(cell, tex=cell.tex.strip("$").replace("-", "$-$")) if is_number(value) else cell


def integer(value: int | None) -> Cell:
    """A count."""
    return missing_cell() if value is None else Cell(str(value), str(value), (int(value),))


def mean_sem(mean: float, sem: float, decimals: int = 2, *, sign: bool = False) -> Cell:
    """Mean and standard error; the error is left out where there is none (one run).

    >>> mean_sem(0.5, 0.0004).plain, mean_sem(3.0, 1e-9).plain
    ('0.5000 ± 0.0004', '3.00 ± <0.005')
    """
    if not is_number(mean):
        return missing_cell(2)
    decimals = _error_decimals(sem, decimals)
    left, right = fixed(mean, decimals, sign=sign), fixed_error(sem, decimals)
    if not is_number(sem):
        return replace(left, raw=(*left.raw, None))
    return Cell(
        f"{left.plain} ± {right.plain}", rf"{left.tex[:-1]} \pm {right.tex[1:]}", left.raw + right.raw
    )


def fixed_error(error: float | None, decimals: int = 2) -> Cell:
    """A standard error: with up to four decimals where it would print as zero with fewer, or as a bound.

    >>> [fixed_error(error).plain for error in (0.25, 0.004, 0.0, 1e-9)]
    ['0.25', '0.004', '0.00', '<0.005']
    """
    cell = fixed(error, _error_decimals(error, decimals))
    if not error or not is_number(error) or float(cell.plain):
        return cell
    return _in_math(f"<{0.5 * 10**-decimals:.{decimals + 1}f}", error)


def _error_decimals(error: float | None, decimals: int) -> int:
    if error is None or not is_number(error):
        return decimals
    return next((n for n in range(decimals, 5) if float(f"{error:.{n}f}")), decimals)


def estimate(value: float, ends: tuple[float, float], decimals: int = 2, *, sign: bool = True) -> Cell:
    """An estimate with its interval; differences print their plus."""
    if not is_number(value):
        return missing_cell(3)
    centre, around = fixed(value, decimals, sign=sign), interval(ends, decimals)
    return replace(centre, raw=centre.raw + around.raw) if None in around.raw else joined(centre, around, " ")


def interval(ends: tuple[float, float], decimals: int = 2) -> Cell:
    """An interval alone."""
    low, high = ends
    if not (is_number(low) and is_number(high)):
        return missing_cell(2)
    return _in_math(f"[{low:.{decimals}f}, {high:.{decimals}f}]", low, high)


def p_value(p: float) -> Cell:
    """A p value: two decimals from .1, three from .001, below that a power of ten.

    >>> [p_value(p).plain for p in (0.82, 0.0693, 4.5e-4, 2.3e-25, 1e-40)]
    ['0.82', '0.069', '4.5×10⁻⁴', '2.3×10⁻²⁵', '<10⁻³⁰']
    """
    if not is_number(p):
        return missing_cell()
    if p >= 0.001:
        return fixed(p, 2 if p >= 0.1 else 3)
    mantissa, exponent = f"{max(p, SMALLEST_P):.1e}".split("e")
    power = int(exponent)
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    if p < SMALLEST_P:
        return Cell(f"<10{raised}", f"$<10^{{{power}}}$", (float(p),))
    return Cell(f"{mantissa}×10{raised}", rf"${mantissa}\times10^{{{power}}}$", (float(p),))


def percent(fraction: float) -> Cell:
    """A fraction as whole percent, with the sign."""
    number = percent_number(fraction)
    if not is_number(fraction):
        return number
    return Cell(f"{number.typed}%", rf"{number.tex[:-1]}\%$", (float(fraction),))


def percent_number(fraction: float) -> Cell:
    """A fraction as whole percent, without the sign (the text prints its own)."""
    if not is_number(fraction):
        return missing_cell()
    # A half percent rounds up: 4.5 of 100 completed levels is 5, where binary rounding to even would say 4.
    digits = str(math.floor(abs(fraction) * 100 + 0.5 + 1e-9))
    return _in_math(f"-{digits}" if fraction < 0 and digits != "0" else digits, fraction * 100)


def count_word(count: int) -> Cell:
    """A count as an English word up to twelve, then as a numeral."""
    counts = shipped("data/words.toml")["counts"]
    word = counts[count] if 0 <= count < len(counts) else str(count)
    return Cell(word, word, (int(count),))


def counted(n: int, singular: str, plural: str = "") -> str:
    """A count with its noun in the right number.

    >>> counted(1, "run"), counted(3, "run"), counted(2, "entry", "entries")
    ('1 run', '3 runs', '2 entries')
    """
    return f"{n:,} {singular}" if n == 1 else f"{n:,} {plural or singular + 's'}"


def mark_cell(value: bool | None) -> Cell:
    """Yes or no as a tick or a dash; n/a where the question does not arise."""
    if value is None:
        return text_cell("n/a")
    return text_cell("✓", tex=r"\checkmark", raw="yes") if value else text_cell("–", tex="--", raw="no")


def joined(first: Cell, second: Cell, separator: str = " / ") -> Cell:
    """Two entries in one column."""
    return Cell(
        first.plain + separator + second.plain, first.tex + separator + second.tex, first.raw + second.raw
    )


def fine_decimals(value: float) -> int:
    """Two decimals as in the paper, or three where two would show next to nothing."""
    return 3 if 0 < abs(value) < 0.1 else 2


def formatted(style: str, *values: Any) -> Cell:
    """Values in a named style: decimals, with a plus if signed, words of `data/words.toml`, or one of `_STYLES`.

    >>> formatted("+2", 1.5).plain, formatted("p", 0.0312).plain, formatted("mean_sem", 3.0, 0.25).plain
    ('+1.50', '0.031', '3.00 ± 0.25')
    >>> formatted("call_words", "above").plain
    'above the floor'
    """
    if style in _STYLES:
        return _STYLES[style](*values)
    if style in shipped("data/words.toml"):
        return _spelt(style, values[0])
    if style.startswith("bare"):
        return bare(values[0], int(style[-1]))
    return fixed(values[0], int(style[-1]), sign=style.startswith("+"))


def _spelt(style: str, word: str | None) -> Cell:
    """A word of a closed set as it is printed; CSV keeps the word itself."""
    if word is None:
        return missing_cell()
    words = shipped("data/words.toml")[style][word]
    return Cell(words, words, (word,))


#: How tables and numbers print their values. "fine" styles have three decimals for small values.
_STYLES: dict[str, Callable[..., Cell]] = {
    "cell": lambda cell: cell,
    "text": lambda text: text_cell(text or ""),
    "n": integer,
    "len": lambda values: integer(len(values)),
    "word": count_word,
    "p": p_value,
    "percent": percent,
    "%": percent_number,
    "%10": lambda tenths: percent_number(tenths / 10),
    "%1": lambda fraction: fixed(fraction * 100, 1),
    "tiers": lambda first, second: joined(_spelt("tier", first), _spelt("tier", second)),
    "mark": mark_cell,
    "of": lambda part, whole: missing_cell(2) if part is None else joined(integer(part), integer(whole), "/"),
    "range": lambda low, high: Cell(
        f"{low:g}, {high:g}".replace("-", "−"), f"{low:g}, {high:g}", (low, high)
    ),
    "count": lambda n: missing_cell() if n is None else Cell(f"{n:,}", f"{n:,}", (int(n),)),
    "g": lambda value: text_cell(f"{value:g}", raw=value) if is_number(value) else empty_cell(),
    "mean_sem": mean_sem,
    "signed_sem": lambda value, sem: mean_sem(value, sem, sign=True),
    "interval": lambda low, high: interval((low, high)),
    "signed_interval": lambda value, low, high: estimate(value, (low, high)),
    "percent1": lambda fraction: text_cell(f"{100 * fraction:.1f}%", raw=fraction),
    "fine": lambda value: fixed(value, fine_decimals(value)),
    "error": lambda value, error: fixed_error(error, fine_decimals(value)),
    "fine_sem": lambda value, sem: mean_sem(value, sem, fine_decimals(value)),
    "fine_interval": lambda value, low, high: estimate(value, (low, high), fine_decimals(value)),
}


def is_number(value: float | None) -> bool:
    """Whether there is a finite number."""
    return value is not None and math.isfinite(value)


def _in_math(digits: str, *raw: float) -> Cell:
    """Digits in math mode; the plain text has a typographic minus."""
    return Cell(digits.replace("-", "−"), f"${digits}$", tuple(map(float, raw)))
