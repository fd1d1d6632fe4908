"""Numbers: all 113 keys of the paper's text, by rule, in its formats."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.report.printed_cka import write_cka
from tests.report.printed_results import INVENTED, printed_results, without

from gapfloor.report.cka import read_cka
from gapfloor.report.findings import Findings
from gapfloor.report.numbers import Number, build_numbers, to_json, to_tex

pytestmark = pytest.mark.fast

KEYS: dict[str, dict[str, object]] = json.loads(
    (Path(__file__).parent / "data" / "paper_keys.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Number]:
    folder = tmp_path_factory.mktemp("cka")
    write_cka(folder)
    return build_numbers(Findings(printed_results()), read_cka(folder))


def test_the_paper_uses_113_keys() -> None:
    assert len(KEYS) == 113


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_paper_has_its_value(numbers: dict[str, Number], key: str) -> None:
    assert key in numbers
    number = numbers[key]
    expected = KEYS[key]["value"]
    if expected is None:
        assert key in INVENTED
    elif isinstance(expected, str):
        assert number.cell.plain == expected
    elif "range" in KEYS[key]:
        low, high = KEYS[key]["range"]  # type: ignore[misc]
        # The ranges are rounded themselves.
        slack = 1e-3 * max(abs(low), abs(high))
        assert low - slack <= number.cell.raw[0] <= high + slack  # type: ignore[operator]
    else:
        printed = float(number.cell.plain.replace("−", "-"))
        assert printed == pytest.approx(float(str(expected)), abs=1e-9)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("d.heist.8M.s.test", "−0.27"),
        ("d.heist.8M.s.train.u", "0.88"),
        ("d.heist.8M.s.train", "+0.88"),
        ("gap.starpilot.25M.s", "+2.11"),
        ("d.fruitbot.8M.s.test.ph", "3.3×10⁻¹¹"),
        ("ratio.miner.8M.s.test", "5.1"),
        ("count.above.8M.s.word", "five"),
        ("count.below.8M.g", "2"),
        ("H.miner.8M", "2.087"),
        ("H.miner.8M.pct", "77.1"),
        ("share.max.8M", "66"),
        ("succ.heist.floor.test", "32"),
        ("d.heist.25M.s.test.label", "not distinguishable"),
        ("cobbe.coinrun.8M.floor_test", "−0.34"),
        ("d.bigfish.8M.s.test.z", "2.6"),
        ("heist.25M.s.test", "3.00"),
    ],
)
def test_formats_are_the_papers(numbers: dict[str, Number], key: str, text: str) -> None:
    assert numbers[key].cell.plain == text


def test_success_comes_from_the_table_of_games_not_from_the_data(numbers: dict[str, Number]) -> None:
    assert "succ.coinrun.8M.s.test" in numbers
    assert "succ.miner.8M.s.test" not in numbers


def test_a_key_without_data_is_not_defined() -> None:
    made = build_numbers(Findings(without(printed_results(), screen=())))
    assert "H.miner.8M" not in made
    assert r"\gapfloor@define{H.miner.8M}" not in to_tex(made)


def test_tex_defines_every_key_once(numbers: dict[str, Number]) -> None:
    defined = re.findall(r"\\gapfloor@define\{([^}]*)\}\{", to_tex(numbers))
    assert len(defined) == len(set(defined)) == len(numbers)


def test_json_holds_the_unrounded_value(numbers: dict[str, Number]) -> None:
    document = json.loads(to_json(numbers))
    assert document["succ.heist.8M.g.test"]["text"] == "5"
    assert document["succ.heist.8M.g.test"]["value"] == pytest.approx(104 / 2304 * 100)
    assert document["gap.heist.8M.s"]["n"] == 6
