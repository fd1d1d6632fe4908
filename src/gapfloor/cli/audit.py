"""`gapfloor audit`: the ledger of twelve code bases, its verification, and the scanner."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gapfloor import __version__
from gapfloor.api.audit_ledger import DEFAULT_REPOS, audit_ledger, audit_registry, audit_verify
from gapfloor.api.audit_scan import audit_scan
from gapfloor.api.audit_trace import audit_trace
from gapfloor.audit.judgement import findings, formats
from gapfloor.audit.scan import ScanResult
from gapfloor.cli.options import with_schema
from gapfloor.cli.tables import print_result
from gapfloor.errors import CheckFailedError, GapfloorError, UsageError
from gapfloor.records.atomic import write_text_atomically
from gapfloor.text_tables import ReadableResult


@click.group("audit", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    r"""Find the action rule that a code base uses at test time.

    \b
    Examples:
      gapfloor audit scan path/to/repository
      gapfloor audit scan . --sarif --out audit.sarif --require-explicit
      gapfloor audit trace -- python evaluate.py --checkpoint model.pt
    """


@command.command("ledger")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show_ledger(as_json: bool) -> None:
    """Print the paper's two audit tables, with counts computed from the ledger."""
    _print_result(audit_ledger(), as_json=as_json)


@command.command("verify")
@click.option(
    "--repos",
    type=click.Path(path_type=Path),
    default=Path(DEFAULT_REPOS),
    envvar="GAPFLOOR_AUDIT_REPOS",
    show_default=True,
    help="Folder of clones: owner+name, owner/name or name.",
)
@click.option("--clone", is_flag=True, help="Fetch missing pinned commits from GitHub into --repos first.")
@click.option("--registry", is_flag=True, help="Check the registry of further audits too.")
@click.option(
    "--file",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Check this registry file too; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def verify(repos: Path, clone: bool, registry: bool, files: tuple[Path, ...], as_json: bool) -> None:
    """Check every evidence line of the ledger in local clones, at its pinned commit."""
    result = audit_verify(repos, clone=clone, registry=registry, files=files, progress=_tell)
    _print_result(result, as_json=as_json)
    if not result.is_confirmed:
        wrong = len(result.checks) - result.count("ok")
        raise CheckFailedError(f"{wrong} of {len(result.checks)} evidence lines were not confirmed.")


def _tell(words: str) -> None:
    click.echo(words, err=True)


def _print_result(result: ReadableResult, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(with_schema(result.to_dict()), indent=2, ensure_ascii=False))
    else:
        print_result(result, as_json=False)


@command.command("registry")
@click.option(
    "--file", "files", type=click.Path(path_type=Path), multiple=True, help="Add this registry file."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the page to this file instead.")
@click.option(
    "--only", default="", metavar="TEXT", help="Show entries whose name, rule or provenance contains TEXT."
)
def show_registry(files: tuple[Path, ...], as_json: bool, out: Path | None, only: str) -> None:
    """Compare every audited repository: rule, provenance, in-loop and held out."""
    result = audit_registry(files, only=only)
    _deliver(_json_text(result.to_dict()) if as_json else repr(result), out)


@command.command("scan")
@click.argument("target", default=".")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--sarif", "as_sarif", is_flag=True, help="SARIF 2.1.0, for code-scanning pages.")
@click.option("--md", "as_md", is_flag=True, help="A Markdown report (the default).")
@click.option("--out", type=click.Path(path_type=Path), help="Write the report to this file instead.")
@click.option(
    "--entry",
    metavar="COMMAND",
    help="The command that was used, e.g. 'python train.py --config x.yaml': scan its script with its settings.",
)
@click.option("--diff", "base", metavar="COMMIT", help="Only show what changed since this commit.")
@click.option(
    "--require-explicit",
    is_flag=True,
    help="Exit 1 when an evaluation path has no rule that is set at the call or by an option, or when none was found.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="Findings listed in this file do not fail --require-explicit.",
)
@click.option(
    "--write-baseline",
    type=click.Path(path_type=Path),
    help="Write the findings of this scan to a baseline file.",
)
def run_scan(
    target: str,
    as_json: bool,
    as_sarif: bool,
    as_md: bool,
    out: Path | None,
    entry: str | None,
    base: str | None,
    require_explicit: bool,
    baseline: Path | None,
    write_baseline: Path | None,
) -> None:
    """Report every evaluation path of a repository: PATH, GIT_DIR, or either with @COMMIT.

    Sources are read as text; nothing is run, imported or followed outside the path. A comment `# gapfloor: ignore` on
    the line that steps the environment accepts a finding.
    """
    _refuse_together({"--json": as_json, "--sarif": as_sarif, "--md": as_md})
    _refuse_together({"--diff": base is not None, "--sarif": as_sarif})
    accepted = findings.read_baseline(baseline) if baseline is not None else set()
    try:
        result = audit_scan(target, entry=entry)
    except GapfloorError:
        raise
    except Exception as error:
        # Our own fault: whoever reads the file downstream must find one that says so.
        if as_json:
            _deliver(_json_text(formats.failed_document(target, error)), out)
        elif as_sarif:
            _deliver(_json_text(formats.failed_sarif(error, version=__version__)), out)
        raise
    unstated = result.unstated()
    if base is not None:
        _deliver(_changes_text(target, base, entry, result, as_json=as_json), out)
    elif as_json:
        _deliver(_json_text(result.to_dict()), out)
    elif as_sarif:
        _deliver(_json_text(result.to_sarif(accepted=accepted)), out)
    else:
        _deliver(repr(result), out)
    if write_baseline is not None:
        write_text_atomically(write_baseline, findings.write_baseline(unstated))
    if require_explicit:
        fresh = [item for item in unstated if not item.is_suppressed and item.fingerprint not in accepted]
        if not result.paths:
            raise CheckFailedError(
                "No evaluation path was found, so no rule is stated. Scan the folder that holds the evaluation script."
            )
        if fresh:
            raise CheckFailedError(
                f"{formats.describe_findings(fresh)} Pass the rule at the evaluation call, or make it an option."
            )


def _refuse_together(given: dict[str, bool]) -> None:
    """Options of which at most one can be given."""
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} exclude each other. Give one of them.")


def _json_text(document: dict[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _deliver(text: str, out: Path | None) -> None:
    if out is not None:
        write_text_atomically(out, text)
    else:
        click.echo(text, nl=False)


def _changes_text(target: str, base: str, entry: str | None, result: ScanResult, *, as_json: bool) -> str:
    folder = target.rpartition("@")[0] if "@" in target and not Path(target).exists() else target
    changes = result.changes_since(audit_scan(f"{folder}@{base}", entry=entry))
    if not as_json:
        return formats.changes_as_markdown(changes, base=base)
    rows = {
        name: [
            {"script": path.script, "rule": path.rule, "provenance": path.provenance, "levels": path.levels}
            for path in paths
        ]
        for name, paths in (("added", changes.added), ("removed", changes.removed))
    }
    return _json_text({"base": base, **rows})


@command.command("trace", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--steps", type=click.IntRange(min=1), help="End the run after this many environment steps.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the report to this file instead.")
@click.option("--no-scan", is_flag=True, help="Do not scan the folder for comparison.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
def run_trace(
    steps: int | None, as_json: bool, out: Path | None, no_scan: bool, arguments: tuple[str, ...]
) -> None:
    """Run your own command and report how its actions were chosen, as observed.

    Steps, draws, maxima, resets and optimiser steps are watched in the process of the command. This runs the command:
    use it only on code that you would run anyway. What the command prints goes to standard error.
    """
    result = audit_trace(arguments, steps=steps, scan=not no_scan)
    _deliver(_json_text(result.to_dict()) if as_json else repr(result), out)
    if result.observed.exit_code != 0:
        raise CheckFailedError(
            f"The command ended with exit code {result.observed.exit_code}; the report may be incomplete."
        )
