"""The page with every repository that was audited by hand, made from the registry, with fields that filter its rows."""

from __future__ import annotations

from html import escape

from gapfloor.audit.ledger import RegistryEntry, load_registry

_INTRODUCTION = """# Registry of audits

{count} repositories, read by hand at a pinned commit. [The audit](audit.md#reading-the-answer) explains the columns.
Type a name, a rule or a provenance to see only the rows that contain every word. `gapfloor audit ledger --registry
--repos CLONES` checks the evidence behind each row.

<div class="floor-search">
<input type="search" id="floor-filter" placeholder="e.g. sampled default" aria-label="Words that rows must contain">
<select id="floor-family" aria-label="Rule"><option value="">all rules</option>{options}</select>
<span id="floor-count" aria-live="polite"></span>
</div>

<table id="floor-table">
<tr><th>repository</th><th>rule</th><th>provenance</th><th>held out</th><th>in-loop</th>
<th class="wide">lines</th></tr>"""
_WORDS = {True: "yes", False: "no", None: "?"}


def audit_registry_page() -> dict[str, str]:
    """Path below `docs` -> contents."""
    entries = sorted(load_registry(), key=lambda entry: entry.name.lower())
    rules = sorted({entry.rule for entry in entries})
    options = "".join(f"<option>{escape(rule)}</option>" for rule in rules)
    parts = [_INTRODUCTION.format(count=len(entries), options=options), *map(_row, entries), "</table>", ""]
    return {"audit-registry.md": "\n".join(parts)}


def _row(entry: RegistryEntry) -> str:
    address = f"https://github.com/{entry.repo}/tree/{entry.commit}"
    in_loop = "n/a" if entry.in_loop is None else _WORDS[entry.in_loop]
    lines = ", ".join(dict.fromkeys(f"{line.file}:{line.line}" for line in entry.evidence[:2]))
    cells = (entry.rule, entry.provenance, _WORDS[entry.evaluates_heldout], in_loop)
    return (
        f'<tr data-family="{escape(entry.rule)}"><td><a href="{escape(address)}">{escape(entry.name)}</a></td>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + f'<td class="wide">{escape(lines)}</td></tr>'
    )
