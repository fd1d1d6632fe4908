"""How often the scanner agrees with readings by hand, for each field and each level of evidence.

    python benchmarks/audit_accuracy.py TRUTH.json CLONES [--only TEXT] [--json FILE]

TRUTH.json is a list of objects with `repo` (owner/name), `commit`, `evaluates_heldout`, `rule`, `provenance` and
`in_loop`; `entry` is passed to the scanner as its `--entry`. CLONES is a folder of clones as
`gapfloor audit verify --repos` reads them. A proved answer is right or wrong, a likely one is likely right or likely
wrong, and the others are open. A scan that fails, or that needs more than 120 s of processor time, counts as a crash.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FIELDS = ("evaluates_heldout", "rule", "provenance", "in_loop")
GRADES = ("right", "likely right", "open", "likely wrong", "proved wrong")
MARKS = dict(zip(GRADES, "+~?xX", strict=True))


def grade(field: str, truth: Any, answer: Any, level: str) -> str:
    """One of `GRADES`."""
    if field == "in_loop" and truth is None:
        # Without an evaluation nothing can be in-loop; "no" is not an error then, "yes" is.
        return "right" if answer is not True else "proved wrong" if level == "proved" else "likely wrong"
    if level == "open":
        return "open"
    if answer == truth:
        return "right" if level == "proved" else "likely right"
    return "proved wrong" if level == "proved" else "likely wrong"


def _limit() -> None:
    """Seconds of the processor, because on a busy machine the clock says nothing about the scanner."""
    resource.setrlimit(resource.RLIMIT_CPU, (120, 125))


def scan_one(target: str, entry: str | None) -> dict[str, Any] | str:
    """The scan's document, or the reason why there is none."""
    command = [sys.executable, "-m", "gapfloor.cli.main", "audit", "scan", target, "--json"]
    command += ["--entry", entry] if entry else []
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_limit)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no message"])[-1][:160]
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def find_clone(clones: Path, repo: str) -> Path:
    """The folder that holds a repository."""
    owner, _, name = repo.partition("/")
    for folder in (clones / f"{owner}+{name}", clones / owner / name, clones / name):
        if folder.exists():
            return folder
    raise SystemExit(f"There is no clone of {repo} below {clones}.")


def main() -> None:
    """Print one line per repository and the table of counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("truth", type=Path)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    counts = {field: dict.fromkeys(GRADES, 0) for field in FIELDS}
    crashes = number = 0
    rows = []
    for row in json.loads(arguments.truth.read_text()):
        if arguments.only.lower() not in f"{row.get('name', '')} {row['repo']}".lower():
            continue
        number += 1
        start = time.perf_counter()
        target = f"{find_clone(arguments.clones, row['repo'])}@{row['commit']}"
        document = scan_one(target, row.get("entry"))
        seconds = time.perf_counter() - start
        answers: dict[str, Any] = dict.fromkeys(FIELDS)
        levels = dict.fromkeys(FIELDS, "open")
        note = f"crash: {document}"
        if isinstance(document, str):
            crashes += 1
        else:
            answers, levels = document["verdict"], document["verdict"]["levels"]
            note = f"{len(document['paths'])} paths"
        grades = {field: grade(field, row[field], answers[field], levels[field]) for field in FIELDS}
        for field, value in grades.items():
            counts[field][value] += 1
        shown = " ".join(f"{MARKS[grades[field]]}{answers[field]!s:18.18}" for field in FIELDS)
        print(f"{row['repo'][:40]:40} {shown} {seconds:5.1f} s  {note}", flush=True)
        rows.append({"repo": row["repo"], "answers": {f: answers[f] for f in FIELDS}, "grades": grades})
    print(f"\n| field | {' | '.join(GRADES)} |\n|---{'|---' * len(GRADES)}|")
    for field, values in counts.items():
        print(f"| {field} | {' | '.join(str(values[name]) for name in GRADES)} |")
    print(f"\n{number} repositories, {crashes} crashes.")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
