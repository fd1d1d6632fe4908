"""How numbers are printed: the paper's formats, in plain text and in LaTeX."""

import math

import pytest

from gapfloor.tables.cells import count_word, estimate, fixed, p_value, percent_number

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("cell", "plain", "tex"),
    [
        (fixed(-1.234, sign=True), "−1.23", "$-1.23$"),
        (fixed(math.nan), "–", "--"),
        (estimate(0.5, (-0.25, 1.25)), "+0.50 [−0.25, 1.25]", "$+0.50$ $[-0.25, 1.25]$"),
        (p_value(9.9e-4), "9.9×10⁻⁴", r"$9.9\times10^{-4}$"),
    ],
)
def test_a_number_is_printed_as_in_the_paper(cell, plain, tex) -> None:
    assert (cell.plain, cell.tex) == (plain, tex)


def test_p_values_change_format_at_a_tenth_and_a_thousandth() -> None:
    shown = [p_value(p).tex for p in (1.0, 0.1, 0.0999, 0.001, 9.9e-4, 1e-7, 9e-31)]
    assert shown == [
        "$1.00$", "$0.10$", "$0.100$", "$0.001$", r"$9.9\times10^{-4}$", r"$1.0\times10^{-7}$", r"$<10^{-30}$",
    ]  # fmt: skip


def test_counts_beyond_twelve_are_numerals() -> None:
    assert [count_word(n).plain for n in (0, 12, 13)] == ["zero", "twelve", "13"]


def test_half_a_percent_rounds_up() -> None:
    assert percent_number(0.045).plain == "5"
    assert percent_number(0.0449).plain == "4"
