"""Puts what a benchmark measured into a page, between two marks that only say which command wrote it."""

from __future__ import annotations

from pathlib import Path


def write_between(page: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- begin: NAME -->` and `<!-- end: NAME -->`."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    before, found, rest = page.read_text().partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{page} has no lines {begin} and {end}.")
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")
