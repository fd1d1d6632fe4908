"""A registry of audits: any number of repositories in the ledger's form, from the package and from files of your own.

An entry names a commit, the classification and the lines that show it, each with the SHA-256 of its text, so that
anyone with a clone can check it. Nobody's code is carried.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from gapfloor.audit.ledger.entries import EvidenceLine, load_ledger
from gapfloor.errors import UsageError
from gapfloor.escape import escape_markdown
from gapfloor.input_files import read_input_text
from gapfloor.settings import parse_json

SCHEMA = "gapfloor-audit-registry/1"
_FIELDS = ("name", "repo", "commit", "evaluates_heldout", "rule", "provenance", "in_loop", "evidence")
_YES_NO_UNKNOWN = (bool, type(None))
_KINDS: dict[str, tuple[type, ...]] = {
    "name": (str,), "repo": (str,), "commit": (str,), "rule": (str,), "provenance": (str,), "notes": (str,),
    "evaluates_heldout": _YES_NO_UNKNOWN, "in_loop": _YES_NO_UNKNOWN, "evidence": (list,),
}  # fmt: skip


@dataclass(frozen=True)
class RegistryEntry:
    """One audited repository."""

    name: str
    repo: str
    commit: str
    evaluates_heldout: bool | None
    rule: str
    provenance: str
    in_loop: bool | None
    notes: str
    evidence: tuple[EvidenceLine, ...]


def load_registry(files: tuple[Path, ...] = ()) -> tuple[RegistryEntry, ...]:
    """The twelve of the ledger, the registry of the package, and the entries of `files`, in this order."""
    names = (*_FIELDS, "notes")
    found = [RegistryEntry(**{name: getattr(entry, name) for name in names}) for entry in load_ledger()]
    text = resources.files("gapfloor.audit").joinpath("data/registry.json").read_text(encoding="utf-8")
    found += _entries(json.loads(text), "the package's registry")
    for path in files:
        found += _entries(parse_json(read_input_text(path), source=f"The registry '{path}'"), f"'{path}'")
    return tuple(found)


def _entries(document: Any, where: str) -> list[RegistryEntry]:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(f"{where} is not a registry: its schema must be '{SCHEMA}'.")
    found = []
    rows = document.get("entries")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{where} is not a registry: `entries` must be a list of objects.")
    for row in rows:
        missing = [name for name in _FIELDS if name not in row]
        if missing:
            raise UsageError(f"An entry of {where} lacks {', '.join(missing)}. Add the fields and run again.")
        odd = [name for name, kinds in _KINDS.items() if name in row and not isinstance(row[name], kinds)]
        if odd:
            raise UsageError(
                f"An entry of {where} has a value of another type in {', '.join(odd)}: correct it."
            )
        try:
            evidence = tuple(
                EvidenceLine(**({"repo": row["repo"], "commit": row["commit"]} | line))
                for line in row["evidence"]
            )
        except TypeError as error:
            raise UsageError(f"The evidence of {row['name']} in {where} cannot be read ({error}).") from None
        fields = {name: row[name] for name in _FIELDS if name != "evidence"}
        found.append(RegistryEntry(**fields, notes=row.get("notes", ""), evidence=evidence))
    return found


def compare_entries(entries: tuple[RegistryEntry, ...]) -> str:
    """A Markdown page that compares audits: one row per repository, then the counts."""
    lines = [
        "# Action rules at test time",
        "",
        "| repository | rule | provenance | held out | in-loop | what was read |",
        "|---|---|---|---|---|---|",
    ]
    words = {True: "yes", False: "no", None: "n/a"}
    levels = {True: "yes", False: "no", None: "?"}  # the command decides, not the code
    for entry in sorted(entries, key=lambda item: (item.rule, item.provenance, item.name.lower())):
        cells = (
            f"{entry.name} ({entry.repo})", entry.rule, entry.provenance, levels[entry.evaluates_heldout],
            words[entry.in_loop], f"{len(entry.evidence)} lines at {entry.commit[:12]}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
    implicit = [entry for entry in entries if entry.provenance in ("default-argument", "training-rollout")]
    lines += [
        "",
        f"{len(entries)} repositories: {escape_markdown(_counts([entry.rule for entry in entries]))}. "
        f"The rule is inherited, not stated, in {len(implicit)} of them; "
        f"{sum(entry.in_loop is True for entry in entries)} report in-loop returns; "
        f"{sum(entry.evaluates_heldout is True for entry in entries)} evaluate on held-out levels.",
    ]
    return "\n".join(lines) + "\n"


def _counts(values: list[str]) -> str:
    return ", ".join(
        f"{values.count(value)} {value}"
        for value in sorted(set(values), key=lambda item: -values.count(item))
    )
