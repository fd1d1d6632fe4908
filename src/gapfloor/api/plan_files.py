"""Writing, locking and checking the file of an analysis plan: `Plan.init`, `Plan.lock` and `Plan.check`.

What shows that a lock is its author's is a Git commit that holds the plan, and a signature of the lock. How much of a
study has been seen is counted: cells in a store or a file, and data that lie next to the plan.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.grouping import group
from gapfloor.audit.reading.git import run_git
from gapfloor.errors import CheckFailedError, GapfloorError, UsageError
from gapfloor.plan.lock import NO_KEY, Lock, LockedText, add_addendum, load_plan, lock_path, lock_plan
from gapfloor.plan.model import Plan, builtin_text, parse_addendum
from gapfloor.records.atomic import write_text_atomically
from gapfloor.records.dataset import is_dataset
from gapfloor.records.store import DEFAULT_STORE
from gapfloor.settings import read_text
from gapfloor.tables.cells import counted
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of

#: What a signature is for (`ssh-keygen -Y sign -n gapfloor`), so that a signature of something else does not count.
NAMESPACE = "gapfloor"

_KEYS = ("name", "hash", "locked_at", "cells_seen", "seen_in", "status", "commit")


@dataclass(frozen=True, repr=False)
class PlanCheck(ReadableResult):
    """A locked plan that was not changed since, with its addenda."""

    row_names = ("locked",)

    path: Path
    """The plan's file."""
    plan: LockedText
    """The plan as it was locked."""
    addenda: tuple[LockedText, ...]
    """Its addenda, in the order in which they were locked."""
    evidence: tuple[str, ...] = ()
    """The Git commit that holds the plan and the signature of its lock, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """The document of `gapfloor plan check --json`."""
        plan, *addenda = self.json_rows("locked")
        return {"plan": plan, "addenda": addenda, "evidence": list(self.evidence)}

    def json_rows(self, name: str) -> list[dict[str, Any]]:
        """The plan and its addenda as JSON objects."""
        return [{key: getattr(text, key) for key in _KEYS} for text in (self.plan, *self.addenda)]

    def table(self) -> Table:
        """One line for the plan and each addendum."""
        rows = self.json_rows("locked")
        for row in rows:
            row |= {"text": "plan" if row is rows[0] else "addendum", "hash": row["hash"][:12]}
        return table_of("locks", rows)

    def sentences(self) -> list[str]:
        """Earlier locks of a plan in this place, and what shows whose lock this is."""
        return [
            *(f"Locked before: {earlier}." for earlier in self.plan.earlier),
            *self.evidence,
            f"{NO_KEY}.",
        ]


def init_plan(path: str | Path = "plan.toml", *, addendum: bool = False) -> Path:
    """Write a plan with every setting to a file, ready to be changed and locked.

    A plan fixes tests, families, margins, cuts, resamples, seeds and stop conditions. The plan makes its calls by the
    recommended method; its comments say what to change for the paper's own tests.

    Args:
        path: The file to write; it must not exist.
        addendum: Write the start of an addendum (merged argmax) instead.

    Returns:
        The path of the file.

    Command line:
        gapfloor plan init plan.toml
        gapfloor plan init merged.toml --addendum

    Examples:
        >>> import gapfloor, tempfile
        >>> path = gapfloor.Plan.init(f"{tempfile.mkdtemp()}/plan.toml")
        >>> gapfloor.Plan.read(path).floor.alpha
        0.05
    """
    path = Path(path)
    if path.exists():
        raise UsageError(f"{path} exists already. Choose another name, or change that file.")
    write_text_atomically(path, builtin_text("merged" if addendum else "recommended"))
    return path


def lock_file(
    path: str | Path,
    *,
    addendum: str | Path | None = None,
    store: str | Path | None = None,
    cells_seen: int | None = None,
) -> PlanCheck:
    """Fix a plan: its hash, the time, and how many cells have been seen by now.

    Results are pre-registered if no cell had been seen, and a pre-specified re-analysis otherwise.

    Args:
        path: The plan's file; the lock is written next to it.
        addendum: Lock this addendum (a new rule with its own family) to the plan, which is locked already; the cells of
            its rules are counted.
        store: Count the cells in this store or file of episodes (default: gapfloor-store, and what lies next to the
            plan).
        cells_seen: State the number of cells seen, for data that lie elsewhere.

    Returns:
        What was locked, and what its results may be called.

    Raises:
        UsageError: The plan is locked already; or the addendum's plan is not, or it tests a rule that is fixed already.

    Command line:
        gapfloor plan lock plan.toml --store gapfloor-store
        gapfloor plan lock plan.toml --addendum merged.toml

    Examples:
        >>> import gapfloor, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = gapfloor.Plan.init(f"{folder}/plan.toml")
        >>> gapfloor.Plan.lock(path, cells_seen=0).plan.status
        'pre-registered'
        >>> merged = gapfloor.Plan.init(f"{folder}/merged.toml", addendum=True)
        >>> [text.status for text in gapfloor.Plan.lock(path, addendum=merged, cells_seen=12).addenda]
        ['pre-specified']
    """
    path = Path(path)
    written = path if addendum is None else Path(addendum)
    text = read_text(written)
    rules = None if addendum is None else parse_addendum(text, source=str(written)).rules
    count, where = _count_seen(path, store=store, cells_seen=cells_seen, rules=rules)
    seen: dict[str, Any] = {"cells_seen": count, "seen_in": where, "commit": commit_holding(written, text)}
    lock = lock_plan(path, **seen) if addendum is None else add_addendum(path, written, **seen)
    return _check_of(path, lock)


def check_plan(path: str | Path) -> PlanCheck:
    """Check that a plan is locked and unchanged since.

    Args:
        path: The plan's file.

    Returns:
        The plan and its addenda as they were locked.

    Raises:
        CheckFailedError: The plan is not locked, or was changed after locking.

    Command line:
        gapfloor plan check plan.toml

    Examples:
        >>> import gapfloor, tempfile
        >>> path = gapfloor.Plan.init(f"{tempfile.mkdtemp()}/plan.toml")
        >>> locked = gapfloor.Plan.lock(path, cells_seen=12)
        >>> gapfloor.Plan.check(path).plan.status
        'pre-specified'
    """
    path = Path(path)
    lock = load_plan(path).lock
    if lock is None:
        raise CheckFailedError(f"{path} is not locked. Lock it: gapfloor plan lock {path}")
    return _check_of(path, lock)


def _check_of(path: Path, lock: Lock) -> PlanCheck:
    evidence = (describe_commit(path, lock.plan), describe_signature(path))
    return PlanCheck(path, lock.plan, lock.addenda, evidence)


def _count_seen(
    plan: Path, *, store: str | Path | None, cells_seen: int | None, rules: tuple[str, ...] | None
) -> tuple[int, str]:
    """How many cells have been seen, and where they were counted."""
    if store is not None and cells_seen is not None:
        raise UsageError("Give one of store and cells_seen, not both.")
    # What lies next to the plan has been seen, whatever is declared or counted elsewhere. A store and a file may hold
    # the same cells, so they are not added up.
    folder = Path(DEFAULT_STORE)
    found = data_next_to(plan, folder, rules=rules)
    listed = ", ".join(f"{name} ({counted(n, 'cell')})" for name, n in found.items())
    if store is None and cells_seen is None:
        if not found:
            return 0, f"no cells in {folder.name} and no episode file next to the plan"
        return max(found.values()), f"counted in {listed if len(found) > 1 else next(iter(found))}"
    if store is not None:
        source = Path(store)
        if not source.exists():
            raise UsageError(f"{source} does not exist: check its path, or state that 0 cells were seen.")
        is_store = source.is_dir() and not is_dataset(source)
        is_empty = is_store and not any((source / "cells").glob("*.json"))
        first = 0 if is_empty else count_cells(source, rules=rules)
        where = f"{'no cells' if is_empty else 'counted'} in {source.name}"
    else:
        first, where = cells_seen or 0, f"declared {cells_seen}"
    most = max((first, *found.values()))
    is_more = cells_seen is not None or most > first
    return most, where + (f"; next to the plan: {listed}" if listed and is_more else "")


def commit_holding(path: Path, text: str, revision: str = "HEAD") -> str:
    """The full hash of this Git revision if it holds this text in this file; otherwise empty."""
    if not re.fullmatch("HEAD|[0-9a-f]{40}|[0-9a-f]{64}", revision):
        return ""
    try:
        found = run_git(path.parent, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        held = run_git(path.parent, "cat-file", "blob", f"{revision}:./{path.name}")
    except (UsageError, OSError, ValueError):  # Git is not installed, or no such folder
        return ""
    if found.returncode or held.returncode or held.stdout.decode(errors="replace").split() != text.split():
        return ""
    return found.stdout.decode().strip()


def describe_commit(path: Path, locked: LockedText) -> str:
    """Whether the Git commit in the lock holds the plan, as one sentence."""
    if not locked.commit:
        return "The lock names no Git commit: the plan was not committed when it was locked."
    named = f"Git commit {locked.commit[:12]}, which the lock names,"
    if commit_holding(path, locked.text, locked.commit):
        return f"{named} holds this plan."
    return f"{named} is not in this repository or does not hold this plan."


def describe_signature(path: Path) -> str:
    """Whose key signed the lock, as one sentence; a signature that does not fit the lock is refused."""
    lock = lock_path(path)
    signature = lock.with_name(f"{lock.name}.sig")
    if not signature.is_file():
        return f"Nobody signed the lock; to do so: ssh-keygen -Y sign -n {NAMESPACE} -f YOUR-KEY {lock}"
    command = ["ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature.resolve())]
    try:
        answer = subprocess.run(command, input=lock.read_bytes(), capture_output=True, check=False)
    except FileNotFoundError:
        return f"{signature} was not checked, because the program ssh-keygen is not installed."
    key = re.search(r"SHA256:[\w+/]+", answer.stdout.decode(errors="replace"))
    if answer.returncode or key is None:
        raise CheckFailedError(
            f"{signature} is not a signature of {lock}. Restore both from your history, or sign the lock again."
        )
    return f"The lock is signed with the key {key[0]}: compare it with the one that its author published."


#: Files that may hold episodes.
_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")
#: More files below a plan's folder are not looked at.
_MOST_FILES = 20_000


def count_cells(source: Source, *, rules: tuple[str, ...] | None = None) -> int:
    """How many cells (run or reference x rule x level set x draw) a source holds, of these rules or of all."""
    inputs = read_inputs(source)
    study = group(inputs, Plan.paper())
    if rules is None:
        return study.n_cells
    return sum(
        len(sample.draws)
        for condition, runs in study.policies.items()
        if condition.rule in rules
        for sample in runs.values()
    )


def data_next_to(plan: Path, *others: Path, rules: tuple[str, ...] | None = None) -> dict[str, int]:
    """Stores and episode files in a plan's folder or below it, and stores elsewhere, with the cells of each.

    Args:
        plan: the plan's file.
        others: further folders that may be stores.
        rules: count the cells of these rules only.
    """
    folder = Path(plan).resolve().parent
    below = list(_below(folder))
    stores = [path for path in (*(other.resolve() for other in others), *below) if (path / "cells").is_dir()]
    datasets = [path for path in below if is_dataset(path)]
    inside = {*stores, *datasets}
    files = [
        path
        for path in below
        if path.suffix.lower() in _SUFFIXES and path.is_file() and inside.isdisjoint(path.parents)
    ]
    found: dict[str, int] = {}
    for path in dict.fromkeys((*stores, *datasets, *files)):
        try:
            n = count_cells(path, rules=rules)
        except GapfloorError:
            # Not every table in a folder holds episodes.
            continue
        if n:
            found[str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name] = n
    return found


def _below(folder: Path) -> Iterator[Path]:
    """Files and folders below a folder, in order; hidden ones, and what a store holds, are not entered."""
    looked_at = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [] if (Path(place) / "cells").is_dir() else sorted(f for f in folders if f[0] != ".")
        for name in (*folders, *sorted(files)):
            looked_at += 1
            if looked_at > _MOST_FILES:
                return
            yield Path(place) / name
