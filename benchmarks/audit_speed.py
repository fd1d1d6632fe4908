"""How long a scan takes and how much memory it needs, for one or more targets.

    python benchmarks/audit_speed.py [TARGET ...]

Without targets it scans the folder it stands in, so that it runs anywhere. Each target is scanned in a process of
its own, because the peak of memory is a property of a process.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path


def measure(target: str) -> None:
    from gapfloor.audit.reading.sources import read_target
    from gapfloor.audit.scan import scan

    files = len(read_target(target).files)
    start, cpu = time.perf_counter(), time.process_time()
    result = scan(target)
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{result.repo}: {files} files, {len(result.paths)} paths, {wall:.1f} s ({used:.1f} s of CPU), "
        f"{peak:.0f} MB, complete: {result.is_complete}"
    )


def main() -> None:
    targets = sys.argv[1:] or [str(Path(__file__).resolve().parent.parent / "src")]
    if len(targets) == 1:
        measure(targets[0])
        return
    for target in targets:
        subprocess.run([sys.executable, __file__, target], check=True)


if __name__ == "__main__":
    main()
