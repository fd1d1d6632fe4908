"""How often the scanner agrees with readings by hand, for each field and each level of evidence.

    python benchmarks/audit_accuracy.py TRUTH.json CLONES [--only TEXT] [--json FILE] [--precision FILE]

TRUTH.json is a list of objects with `repo` (owner/name), `commit`, `evaluates_heldout`, `rule`, `provenance` and
`in_loop`; `entry` is passed to the scanner as its `--entry`. CLONES is a folder of clones or bare repositories as
`gapfloor audit ledger --repos` reads them. A proved answer is right or proved wrong, a likely one is likely right or
likely wrong, and the others are open. A scan that fails, or that needs more than 120 s of processor time, is a crash.
`--precision` writes the counts to the file from which the scanner prints its own precision.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FIELDS = ("rule", "provenance", "evaluates_heldout", "in_loop")
GRADES = ("right", "likely right", "open", "likely wrong", "proved wrong")
MARKS = dict(zip(GRADES, "+~?xX", strict=True))


def grade(field: str, truth: Any, answer: Any, level: str) -> str:
    """One of `GRADES`."""
    if field == "in_loop" and truth is None:
        # Without an evaluation nothing can be in-loop; "no" is not an error then, "yes" is.
        truth = answer if answer is not True else False
    if level == "open":
        return "open"
    if answer == truth:
        return "right" if level == "proved" else "likely right"
    return "proved wrong" if level == "proved" else "likely wrong"


def _limit() -> None:
    """Seconds of the processor, because on a busy machine the clock says nothing about the scanner."""
    resource.setrlimit(resource.RLIMIT_CPU, (120, 125))


def scan_one(target: str, entry: str | None) -> tuple[dict[str, Any] | str, float, float]:
    """The scan's document (or the reason why there is none), its CPU seconds and its peak memory in MB."""
    command = [sys.executable, "-m", "gapfloor.cli.main", "audit", "scan", target, "--json"]
    command += ["--entry", entry] if entry else []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, preexec_fn=_limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (out, err):
            stream.seek(0)
        cost = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        if process.returncode != 0:
            words = err.read().decode(errors="replace").strip().splitlines() or [f"exit {process.returncode}"]
            return words[-1][:160], *cost
        return json.loads(out.read()), *cost


def find_clone(clones: Path, repo: str) -> Path | None:
    """The folder that holds a repository."""
    owner, _, name = repo.partition("/")
    for folder in (clones / f"{owner}+{name}" / "repo", clones / f"{owner}+{name}", clones / owner / name):
        if folder.exists():
            return folder
    return clones / name if (clones / name).exists() else None


def main() -> None:
    """Print one line per repository and the table of counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("truth", type=Path)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--precision", type=Path)
    arguments = parser.parse_args()
    counts = {field: dict.fromkeys(GRADES, 0) for field in FIELDS}
    missing, crashes, rows = [], [], []
    for row in json.loads(arguments.truth.read_text()):
        if arguments.only.lower() not in f"{row.get('name', '')} {row['repo']}".lower():
            continue
        folder = find_clone(arguments.clones, row["repo"])
        if folder is None:
            missing.append(row["repo"])
            continue
        document, seconds, megabytes = scan_one(f"{folder}@{row['commit']}", row.get("entry"))
        answers: dict[str, Any] = dict.fromkeys(FIELDS)
        levels = dict.fromkeys(FIELDS, "open")
        if isinstance(document, str):
            crashes.append(f"{row['repo']}: {document}")
        else:
            answers, levels = document["verdict"], document["verdict"]["levels"]
        grades = {field: grade(field, row[field], answers[field], levels[field]) for field in FIELDS}
        for field, value in grades.items():
            counts[field][value] += 1
        shown = " ".join(f"{MARKS[grades[field]]}{answers[field]!s:18.18}" for field in FIELDS)
        print(f"{row['repo'][:36]:36} {shown} {seconds:5.1f} s {megabytes:4.0f} MB", flush=True)
        kept = {field: answers[field] for field in FIELDS}
        rows.append(
            {"repo": row["repo"], "answers": kept, "grades": grades, "cpu_s": seconds, "mb": megabytes}
        )
    print(f"\n| field | {' | '.join(GRADES)} |\n|---{'|---' * len(GRADES)}|")
    for field, values in counts.items():
        print(f"| {field} | {' | '.join(str(values[name]) for name in GRADES)} |")
    print(f"\n{len(rows)} scanned. Most CPU {max((row['cpu_s'] for row in rows), default=0):.1f} s, ", end="")
    print(f"most memory {max((row['mb'] for row in rows), default=0):.0f} MB.")
    for words, names in (("Not in CLONES", missing), ("Crashed", crashes)):
        print(f"{words}: {', '.join(names)}" if names else f"{words}: none")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if arguments.precision:
        document = {
            "about": "Counts of benchmarks/audit_accuracy.py for one file of readings by hand.",
            "truth_sha256": hashlib.sha256(arguments.truth.read_bytes()).hexdigest(),
            "n_repositories": len(rows),
            "counts": counts,
        }
        arguments.precision.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
