"""`gapfloor doctor`: platform, engine, determinism and cloning, and what is missing."""

from __future__ import annotations

import click

from gapfloor.cli.options import json_option, print_json
from gapfloor.errors import CheckFailedError


@click.command()
@click.option(
    "--games",
    default="coinrun,starpilot,dodgeball",
    show_default=True,
    help="Games to check, with commas, or all.",
)
@json_option
def command(games: str, as_json: bool) -> None:
    """Check this machine: what is installed, and whether the engine keeps its promises here."""
    from gapfloor.engines.doctor import examine

    findings = examine(games.split(","))
    if as_json:
        print_json({"findings": [finding.to_dict() for finding in findings]})
    else:
        for finding in findings:
            click.echo(f"{finding.mark:8} {finding.subject}: {finding.words}")
    failed = [finding for finding in findings if finding.mark == "FAILED"]
    if failed:
        raise CheckFailedError(f"{len(failed)} check{'s' if len(failed) > 1 else ''} failed: see above.")
