"""How long the report of a paper-sized study takes: 172,032 episodes, 1,392 cells, all formats.

    python benchmarks/report_speed.py

Prints wall and CPU seconds of each part. The data are those of tests/paper_shaped.py, written as a store first.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import paper_shaped
from tests.report.fixture_store import add_surroundings, write_store

from gapfloor.report.source import load_report_source
from gapfloor.report.write import FORMATS, write_report


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        data = paper_shaped.load()
        write_store(store, data.episodes, data.cells)
        add_surroundings(store)
        source = _timed("read and analyse", lambda: load_report_source(store))
        _timed(
            "tables, numbers, page, card",
            lambda: write_report(source, Path(folder) / "a", formats=[f for f in FORMATS if f != "figures"]),
        )
        report = _timed("figures", lambda: write_report(source, Path(folder) / "b", formats=["figures"]))
        size = (Path(folder) / "a" / "index.html").stat().st_size / 1e6
        print(f"{len(report.numbers)} numbers, {len(report.tables.tables)} tables, page of {size:.1f} MB")


def _timed(name, work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    print(f"{name}: {time.perf_counter() - wall:.1f} s wall, {time.process_time() - cpu:.1f} s CPU")
    return result


if __name__ == "__main__":
    main()
