"""Measures the classes that gapfloor ships: `python tools/ship_classes.py` rewrites `src/gapfloor/data/classes.json`.

All games in easy and hard mode, with the paper's settings. The file belongs to one version of the engine; it is shown
for comparison with what `calibrate` measures and never replaces it.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import gapfloor
from gapfloor.calibration.class_measurement import measure_classes
from gapfloor.engines.procgen import GAMES, make_spec
from gapfloor.records.atomic import write_text_atomically

SHIPPED_MODES = ("easy", "hard")


def measure_shipped() -> str:
    """The text of the shipped file, measured again."""
    entries = [
        textwrap.indent(measure_classes(make_spec(game, mode=mode)).to_text().rstrip(), " ")
        for mode in SHIPPED_MODES
        for game in GAMES
    ]
    return '{"games": [\n' + ",\n".join(entries) + "\n]}\n"


def main() -> None:
    """Measure and write."""
    write_text_atomically(Path(gapfloor.__file__).parent / "data" / "classes.json", measure_shipped())


if __name__ == "__main__":
    main()
