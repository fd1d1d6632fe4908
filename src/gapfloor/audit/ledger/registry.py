"""A registry of audits: any number of repositories in the ledger's form, from the package and from files of your own.

An entry names a commit, the classification and the lines that show it, each with the SHA-256 of its text, so that
anyone with a clone can check it. Nobody's code is carried.
"""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import resources
from pathlib import Path

from gapfloor.audit.ledger.entries import RegistryEntry, load_ledger, read_entries
from gapfloor.errors import UsageError
from gapfloor.escape import escape_markdown
from gapfloor.input_files import read_input_text
from gapfloor.settings import parse_json

SCHEMA = "gapfloor-audit-registry/1"


def load_registry(files: tuple[Path, ...] = ()) -> tuple[RegistryEntry, ...]:
    """The twelve of the ledger, the registry of the package, and the entries of `files`, in this order."""
    text = resources.files("gapfloor.audit").joinpath("data/registry.json").read_text(encoding="utf-8")
    documents = {"the package's registry": json.loads(text)}
    documents |= {
        f"'{path}'": parse_json(read_input_text(path), source=f"The registry '{path}'") for path in files
    }
    names = [field.name for field in fields(RegistryEntry)]
    found = [RegistryEntry(**{name: getattr(entry, name) for name in names}) for entry in load_ledger()]
    for where, document in documents.items():
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise UsageError(f"{where} is not a registry: its schema must be '{SCHEMA}'.")
        found += read_entries(RegistryEntry, document.get("entries"), source=where)
    return tuple(found)


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
