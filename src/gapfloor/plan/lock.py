"""Fixing a plan before the data are seen, and finding out whether it was changed since.

The lock is in the plan's folder (`plan.toml` -> `plan.lock`). It keeps the plan's hash and text, the time, and
how many cells of the study had been seen: none makes what follows pre-registered, some a pre-specified
re-analysis. Addenda are locked into the same file, each with its own count. A seal over the whole file shows
when someone has edited it by hand; it protects against accidents, not against intent.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.json_values import DAMAGED, from_exact, to_exact, without_repetition
from gapfloor.plan.model import Addendum, Plan, content_hash, parse_addendum, parse_plan
from gapfloor.records.atomic import write_text_atomically
from gapfloor.settings import read_text

FORMAT = 1
LockStatus = Literal["pre-registered", "pre-specified"]

#: What has to be said wherever results are named after a lock.
NO_KEY = "A lock's hash has no key: it shows accidental changes, not deliberate ones"


@dataclass(frozen=True)
class LockedText:
    """A plan or an addendum as it was locked."""

    name: str
    hash: str
    locked_at: str
    cells_seen: int
    """Cells of the study (for an addendum: of its rules) that existed when this was locked."""
    seen_in: str
    """Where they were counted, or that the number was declared."""
    text: str
    earlier: tuple[str, ...] = ()
    """Earlier locks of a plan in this place whose lock file was removed, in words."""
    commit: str = ""
    """The Git commit that held this text when it was locked; empty if there was none."""

    @property
    def status(self) -> LockStatus:
        """What a report may truthfully call results that this names."""
        return "pre-registered" if self.cells_seen == 0 else "pre-specified"


@dataclass(frozen=True)
class Lock:
    """The content of a lock file."""

    plan: LockedText
    addenda: tuple[LockedText, ...] = ()


@dataclass(frozen=True)
class LockedPlan:
    """A plan with its lock (None: never locked) and its addenda."""

    plan: Plan
    hash: str
    lock: Lock | None
    addenda: tuple[tuple[Addendum, LockedText], ...] = ()


def lock_path(plan_path: Path) -> Path:
    """Where the lock of a plan lies.

    >>> lock_path(Path("study/plan.toml")).as_posix()
    'study/plan.lock'
    """
    return Path(plan_path).with_suffix(".lock")


def lock_plan(
    plan_path: Path, *, cells_seen: int, seen_in: str, commit: str = "", now: datetime | None = None
) -> Lock:
    """Lock the plan in `plan_path`; a plan that is locked already is left as it is, a changed one refused."""
    text, known = read_text(plan_path), load_plan(plan_path)
    if known.lock is not None:
        existing = known.lock.plan
        raise UsageError(
            f"{plan_path} is locked already, since {existing.locked_at} with {existing.cells_seen} cells seen. Add to "
            "it with `gapfloor plan lock PLAN --addendum FILE`, or copy it under another name."
        )
    # Locks are remembered next to the lock file, in case it is removed.
    path = Path(plan_path).with_suffix(".lock-history")
    earlier = tuple(line for line in read_text(path).splitlines() if line) if path.exists() else ()
    locked = dataclasses.replace(_locked(known.plan, text, cells_seen, seen_in, commit, now), earlier=earlier)
    lock = Lock(locked)
    _write_lock(plan_path, lock)
    note = f"{locked.locked_at} {locked.hash[:12]}, {locked.cells_seen} cells seen ({locked.seen_in})"
    write_text_atomically(path, "\n".join((*earlier, note)) + "\n")
    return lock


def add_addendum(
    plan_path: Path,
    addendum_path: Path,
    *,
    cells_seen: int,
    seen_in: str,
    commit: str = "",
    now: datetime | None = None,
) -> Lock:
    """Lock the addendum in `addendum_path` into the plan's lock."""
    locked = load_plan(plan_path)
    if locked.lock is None:
        raise UsageError(f"{plan_path} is not locked. Lock it first: gapfloor plan lock {plan_path}")
    text = read_text(addendum_path)
    addendum = parse_addendum(text, source=str(addendum_path))
    for _, earlier in locked.addenda:
        if earlier.name == addendum.name:
            raise UsageError(
                f"The plan has an addendum '{addendum.name}' already, since {earlier.locked_at}. "
                "Give this one another name."
            )
    already = {rule for other, _ in locked.addenda for rule in other.rules} | set(locked.plan.scope.rules)
    taken = [rule for rule in addendum.rules if rule in already]
    if taken:
        raise UsageError(
            f"{addendum_path}: the rule '{taken[0]}' belongs to the plan or to an earlier addendum. "
            "An addendum adds rules; it cannot test again what is fixed."
        )
    new = _locked(addendum, text, cells_seen, seen_in, commit, now)
    lock = dataclasses.replace(locked.lock, addenda=(*locked.lock.addenda, new))
    _write_lock(plan_path, lock)
    return lock


def load_plan(plan_path: Path) -> LockedPlan:
    """The plan with its lock and addenda; refused if it was changed after locking."""
    text = read_text(plan_path)
    plan = parse_plan(text, source=str(plan_path))
    if not lock_path(plan_path).exists():
        return LockedPlan(plan, content_hash(plan), None)
    lock = read_lock(plan_path)
    if content_hash(plan) != lock.plan.hash:
        changes = difflib.unified_diff(
            lock.plan.text.splitlines(), text.splitlines(), "as locked", "now", lineterm="", n=0
        )
        shown = "\n".join(line for line in changes if not line.startswith("@@"))
        raise CheckFailedError(
            f"{plan_path} was changed after it was locked on {lock.plan.locked_at}:\n{shown}\n"
            "Undo the change, or write it as an addendum (gapfloor plan lock PLAN --addendum FILE)."
        )
    addenda = tuple((parse_addendum(a.text, source=f"addendum '{a.name}'"), a) for a in lock.addenda)
    return LockedPlan(plan, lock.plan.hash, lock, addenda)


def read_lock(plan_path: Path) -> Lock:
    """The lock of a plan; refused if it was edited."""
    path = lock_path(plan_path)
    try:
        document: dict[str, Any] = json.loads(read_text(path), object_pairs_hook=without_repetition)
        seal = document.pop("seal")
        if document["format"] != FORMAT:
            raise UsageError(f"{path} has format {document['format']}; this version reads {FORMAT}.")
        whole = [{"earlier": [], "commit": "", **each} for each in (document["plan"], *document["addenda"])]
        plan, *addenda = (from_exact(LockedText, each) for each in whole)
        if any(not re.fullmatch("[0-9a-f]{0,64}", each.commit) for each in (plan, *addenda)):
            raise ValueError("a commit is not a hash")
    except DAMAGED:
        raise CheckFailedError(
            f"{path} is not a lock file, or is damaged. Restore it from your history."
        ) from None
    if seal != _seal(document):
        raise CheckFailedError(f"{path} was edited after locking. Restore it from your history.")
    return Lock(plan, tuple(addenda))


def counted_by_time(locked: LockedPlan, stored_at: Sequence[str]) -> LockedPlan:
    """The plan with the cells that its store had when it was locked, if they are more than the lock says.

    Args:
        locked: a plan, locked or not.
        stored_at: when the cells of the data were written, as ISO times.
    """
    if locked.lock is None:
        return locked
    text = locked.lock.plan
    before = sum(at < text.locked_at for at in stored_at)
    if before <= text.cells_seen:
        return locked
    seen_in = f"by the times of the data; the lock says {text.cells_seen}"
    counted = dataclasses.replace(text, cells_seen=before, seen_in=seen_in)
    return dataclasses.replace(locked, lock=dataclasses.replace(locked.lock, plan=counted))


def _locked(
    content: Plan | Addendum, text: str, cells_seen: int, seen_in: str, commit: str, now: datetime | None
) -> LockedText:
    if cells_seen < 0:
        raise UsageError(f"The number of cells seen cannot be negative, but is {cells_seen}.")
    moment = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return LockedText(content.name, content_hash(content), moment, cells_seen, seen_in, text, commit=commit)


def _write_lock(plan_path: Path, lock: Lock) -> None:
    document = {"format": FORMAT, **to_exact(lock)}
    for text in (document["plan"], *document["addenda"]):
        # A lock without a history or a commit looks as it did before there were any.
        for name in ("earlier", "commit"):
            if not text[name]:
                del text[name]
    text = json.dumps({**document, "seal": _seal(document)}, indent=1, sort_keys=True)
    write_text_atomically(lock_path(plan_path), text + "\n")


def _seal(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
