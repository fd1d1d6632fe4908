"""`gapfloor analyse` of a paper-sized episode file: seconds, and peak memory of the process.

    python benchmarks/analyse_speed.py [--repeats 3]

The file holds 1,008 cells, 288 merged-argmax cells and 48 floor cells: 172,032 episodes. Each repeat is a new
process, from the command line to the written results.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time gapfloor analyse on a paper-sized file.")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    import paper_shaped

    table = paper_shaped.load().episodes
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("parquet", "csv"):
            path = Path(folder) / f"episodes.{kind}"
            if kind == "parquet":
                pq.write_table(table, path)
            else:
                pa_csv.write_csv(table, path)
            times, processor = [], []
            for i in range(arguments.repeats):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                start = time.perf_counter()
                target = f"{folder}/{kind}{i}"
                command = [sys.executable, "-m", "gapfloor.cli.main", "analyse", str(path), "--out", target]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                times.append(time.perf_counter() - start)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(
                f"{kind}: {table.num_rows} episodes, {min(times):.1f} s ({min(processor):.1f} s of CPU), "
                f"largest process so far {peak:.0f} MB; load {os.getloadavg()[0]:.1f}"
            )


if __name__ == "__main__":
    main()
