"""How numbers are printed: the paper's formats, in plain text and in LaTeX."""

import math

import pytest

from gapfloor.tables.cells import estimate, fixed, p_value

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("cell", "plain", "tex"),
    [
        (fixed(-1.234, sign=True), "−1.23", "$-1.23$"),
        (fixed(math.nan), "–", "--"),
        (estimate(0.5, (-0.25, 1.25)), "+0.50 [−0.25, 1.25]", "$+0.50$ $[-0.25, 1.25]$"),
        (p_value(4.5e-4), "4.5×10⁻⁴", r"$4.5\times10^{-4}$"),
    ],
)
def test_a_number_is_printed_as_in_the_paper(cell, plain, tex) -> None:
    assert (cell.plain, cell.tex) == (plain, tex)
