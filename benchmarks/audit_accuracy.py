"""How often the scanner agrees with readings by hand: right, unresolved and wrong answers per field.

    python benchmarks/audit_accuracy.py TRUTH.json CLONES [--only TEXT] [--json FILE]

TRUTH.json is a list of objects with `repo` (owner/name), `commit`, `evaluates_heldout`, `rule`, `provenance` and
`in_loop`; `scripts` (a list of file names) restricts an entry to the paths of those scripts, and `entry` is passed to
the scanner as its `--entry`. CLONES is a folder of clones as `gapfloor audit verify --repos` reads them. An answer is
right when it equals the truth, unresolved when it is null or "unresolved", and wrong otherwise. A scan that fails, or
that needs more than 120 s of processor time, counts as a crash.
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


def grade(field: str, truth: Any, answer: Any) -> str:
    """right, unresolved or wrong."""
    if field == "in_loop" and truth is None:
        # Without an evaluation nothing can be in-loop; "no" is not an error then, "yes" is.
        return "wrong" if answer is True else "right"
    if answer == truth:
        return "right"
    return "unresolved" if answer in (None, "unresolved") else "wrong"


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
    counts = {field: {"right": 0, "unresolved": 0, "wrong": 0} for field in FIELDS}
    all_right = crashes = number = 0
    rows = []
    for row in json.loads(arguments.truth.read_text()):
        if arguments.only.lower() not in f"{row.get('name', '')} {row['repo']}".lower():
            continue
        number += 1
        start = time.perf_counter()
        target = f"{find_clone(arguments.clones, row['repo'])}@{row['commit']}"
        document = scan_one(target, row.get("entry"))
        seconds = time.perf_counter() - start
        if isinstance(document, str):
            crashes += 1
            answers: dict[str, Any] = dict.fromkeys(FIELDS)
            note = f"crash: {document}"
        else:
            answers = document["verdict"]
            note = f"{len(document['paths'])} paths"
        grades = {field: grade(field, row[field], answers[field]) for field in FIELDS}
        for field, value in grades.items():
            counts[field][value] += 1
        all_right += all(value == "right" for value in grades.values())
        marks = {"right": "+", "unresolved": "?", "wrong": "X"}
        shown = " ".join(f"{marks[grades[field]]}{answers[field]!s:18.18}" for field in FIELDS)
        print(f"{row['repo'][:40]:40} {shown} {seconds:5.1f} s  {note}", flush=True)
        rows.append({"repo": row["repo"], "answers": {f: answers[f] for f in FIELDS}, "grades": grades})
    print()
    print("| field | right | unresolved | wrong |\n|---|---|---|---|")
    for field, values in counts.items():
        print(f"| {field} | {values['right']} | {values['unresolved']} | {values['wrong']} |")
    print(f"\n{number} repositories, {all_right} right in every field, {crashes} crashes.")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
