"""How the CPU time of an evaluation divides: start-up, floor, network, engine, frame cache and the rest.

    OMP_NUM_THREADS=1 python benchmarks/evaluation_parts.py agents/starpilot-easy-impala-100k-s1 --rules greedy

One process does everything that `gapfloor evaluate --workers 1` does on an empty store, under Python's profiler, which
adds a little to every Python call. The floor is played first, so that its share is known.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path

#: Part -> functions of whose own or cumulative time it consists: (end of the file's name, function).
PARTS = {
    "network (ONNX Runtime)": ("own", [("", "<built-in method onnxruntime.capi.onnxruntime_pybind11_state.run>")]),
    "engine steps": ("own", [("procgen_mirror.py", "act")]),
    "initial states of levels": ("own", [("procgen_mirror.py", "load"), ("procgen_mirror.py", "state")]),
    "finding frames in the cache": ("all", [("frame_cache.py", "logits")]),
    "writing cells, reading the store": ("all", [("group.py", "file_cell"), ("store.py", "known_cells")]),
    "comparison with the floor": ("all", [("analysis/evaluation.py", "summarise_evaluation")]),
    "opening engines": ("all", [("libenv.py", "__init__"), ("picture_files.py", "_fill")]),
}  # fmt: skip


def seconds_of(stats: pstats.Stats, kind: str, functions: list[tuple[str, str]]) -> float:
    """Own or cumulative seconds of functions."""
    rows = stats.stats.items()  # type: ignore[attr-defined]
    column = 2 if kind == "own" else 3
    return float(
        sum(
            values[column]
            for (file, _, name), values in rows
            if any(name == wanted and file.endswith(end) for end, wanted in functions)
        )
    )


def main() -> None:
    start = time.process_time()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a run's folder")
    parser.add_argument("--rules", default="greedy")
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    game = Path(options.run).name.partition("-")[0]
    from gapfloor.api.evaluate import evaluate
    from gapfloor.api.floor import floor as measure_floor
    from gapfloor.engines.picture_files import only_look_at
    from gapfloor.engines.procgen import ProcgenEngine
    from gapfloor.levels import LevelSet

    only_look_at([game])
    imported = time.process_time()
    ProcgenEngine(game, slots=1, levels=LevelSet(0, 1)).close()
    parts = {"imports": imported - start, "pictures": time.process_time() - imported}
    with tempfile.TemporaryDirectory() as store:
        begin = time.process_time()
        measure_floor(game, draws=options.draws, store=store, workers=1, progress=False)
        parts["floor"] = time.process_time() - begin
        profile = cProfile.Profile(time.process_time)
        begin = time.process_time()
        profile.enable()
        evaluate(
            options.run,
            game=game,
            rules=options.rules,
            draws=options.draws,
            store=store,
            workers=1,
            progress=False,
        )
        profile.disable()
        whole = time.process_time() - begin
    stats = pstats.Stats(profile)
    found = {name: seconds_of(stats, *what) for name, what in PARTS.items()}
    found["finding frames in the cache"] -= found["network (ONNX Runtime)"]
    parts |= found
    parts["Python in the player, the rule and everything else"] = whole - sum(found.values())
    total = sum(parts.values())
    print(f"{game}, {options.rules}: {total:.1f} CPU s")
    print("| part | CPU s | share |\n|---|---:|---:|")
    for name, seconds in sorted(parts.items(), key=lambda item: -item[1]):
        print(f"| {name} | {seconds:.1f} | {seconds / total:.0%} |")


if __name__ == "__main__":
    main()
