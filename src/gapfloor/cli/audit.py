"""`gapfloor audit`: the ledger of twelve code bases, its verification, and the scanner."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from gapfloor import __version__
from gapfloor.api.audit_scan import audit_scan
from gapfloor.audit.judgement import findings, formats
from gapfloor.audit.ledger import entries as ledgers
from gapfloor.audit.ledger import registry as registries
from gapfloor.audit.ledger import verify as verifying
from gapfloor.audit.scan import ScanResult
from gapfloor.audit.trace import comparison
from gapfloor.audit.trace import observe as observing
from gapfloor.cli.options import with_schema
from gapfloor.errors import CheckFailedError, GapfloorError, UsageError
from gapfloor.records.atomic import write_text_atomically


@click.group("audit", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Which action rule does a code base use at test time?"""


@command.command("ledger")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def show_ledger(as_json: bool) -> None:
    """Print the paper's two audit tables, with counts computed from the ledger."""
    if as_json:
        document = {
            "counts": asdict(ledgers.count_ledger()),
            "entries": [asdict(entry) for entry in ledgers.load_ledger()],
        }
        click.echo(json.dumps(with_schema(document), indent=2, ensure_ascii=False))
        return
    _print_tables()


@command.command("verify")
@click.option(
    "--repos",
    type=click.Path(path_type=Path),
    default=Path("gapfloor-audit-repos"),
    envvar="GAPFLOOR_AUDIT_REPOS",
    show_default=True,
    help="Folder of clones: owner+name/repo, owner/name or name.",
)
@click.option("--clone", is_flag=True, help="Fetch missing pinned commits from GitHub into --repos first.")
@click.option("--registry", "with_registry", is_flag=True, help="Check the registry of further audits too.")
@click.option(
    "--file",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Check this registry file too (repeatable).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def verify(repos: Path, clone: bool, with_registry: bool, files: tuple[Path, ...], as_json: bool) -> None:
    """Check every evidence line of the ledger in local clones, at its pinned commit."""
    entries = registries.load_registry(files) if with_registry or files else None
    if clone:
        repos.mkdir(parents=True, exist_ok=True)
        for repo in verifying.clone_missing(repos, entries=entries):
            click.echo(f"fetched {repo}", err=True)
    if not repos.is_dir():
        raise UsageError(
            f"There is no folder '{repos}' with clones. Give --repos DIR, or add --clone to fetch them."
        )
    result = verifying.verify_ledger(repos, entries=entries)
    if as_json:
        click.echo(json.dumps(with_schema(_as_document(result)), indent=2, ensure_ascii=False))
    else:
        _print_tables()
        _print_checks(result)
    if not result.is_confirmed:
        wrong = len(result.checks) - result.count("ok")
        raise CheckFailedError(f"{wrong} of {len(result.checks)} evidence lines were not confirmed.")


def _as_document(result: verifying.Verification) -> dict[str, object]:
    states = ("ok", "moved", "changed", "no clone", "no commit")
    return {
        "counts": asdict(ledgers.count_ledger()),
        "lines": {state: result.count(state) for state in states},
        "checks": [
            {
                "entry": check.entry,
                "repo": check.evidence.repo,
                "commit": check.evidence.commit,
                "file": check.evidence.file,
                "line": check.evidence.line,
                "what": check.evidence.what,
                "state": check.state,
                "found_at": list(check.found_at),
            }
            for check in result.checks
        ],
    }


def _console() -> Console:
    # Without a terminal rich assumes 80 columns and folds hashes; let rows be as wide as they are.
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def _print_tables() -> None:
    console = _console()
    counts = ledgers.count_ledger()
    first = Table("Code base", "Venue", "Stoch.", "In-loop", title="Audit of twelve code bases")
    for row in ledgers.audit_table():
        first.add_row(*row)
    console.print(first)
    for entry in ledgers.load_ledger():
        if entry.footnote:
            mark = {"*": "*", "dagger": "†", "ddagger": "‡"}[entry.footnote_mark or "*"]
            console.print(f"{mark} {entry.name}: {entry.footnote}")
    second = Table(
        "Code base", "Venue", "Commit", "S", "L", "Location (file:line)", title="Commits and evidence"
    )
    for line in ledgers.commit_table():
        second.add_row(*(cell.replace("[", r"\[") for cell in line))
    console.print(second)
    console.print(
        f"{counts.evaluate_heldout} of {counts.codebases} evaluate on held-out levels; "
        f"{counts.sample} of them sample, {counts.in_loop} report in-loop returns.\n"
        f"Rule set at the call site {counts.explicit_call_site}, "
        f"by configuration {counts.config_option}, by a default argument {counts.default_argument}, "
        f"by the training rollout {counts.training_rollout}: "
        f"{counts.without_explicit_choice} without an explicit choice.\n"
        f"{counts.different_procedures} take train and test numbers from different procedures; "
        f"{counts.locations_corrected} locations of the paper are corrected."
    )


def _print_checks(result: verifying.Verification) -> None:
    for check in result.checks:
        if check.state == "ok":
            continue
        where = f" (now line {', '.join(map(str, check.found_at))})" if check.found_at else ""
        line = check.evidence
        click.echo(
            f"{check.state}: {check.entry} {line.repo}@{line.commit[:12]} {line.file}:{line.line}{where}"
        )
    by_entry: dict[str, list[str]] = {}
    for check in result.checks:
        by_entry.setdefault(check.entry, []).append(check.state)
    for name, states in by_entry.items():
        click.echo(f"{name}: {states.count('ok')} of {len(states)} evidence lines ok")
    click.echo(f"{result.count('ok')} of {len(result.checks)} evidence lines ok")


@command.command("registry")
@click.option(
    "--file", "files", type=click.Path(path_type=Path), multiple=True, help="Add this registry file."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the page to this file instead.")
def show_registry(files: tuple[Path, ...], as_json: bool, out: Path | None) -> None:
    """Compare every audited repository: rule, provenance, in-loop and held out."""
    entries = registries.load_registry(files)
    if as_json:
        _deliver(_json_text({"entries": [asdict(entry) for entry in entries]}), out)
    else:
        _deliver(registries.compare_entries(entries), out)


@command.command("scan")
@click.argument("target", default=".")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
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
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
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
    observed = observing.trace(list(arguments), most_steps=steps)
    static = None if no_scan else comparison.scan_traced_command(observed)
    text = (
        _json_text(comparison.trace_document(observed, static))
        if as_json
        else comparison.trace_markdown(observed, static)
    )
    _deliver(text, out)
    if observed.exit_code != 0:
        raise CheckFailedError(
            f"The command ended with exit code {observed.exit_code}; the report may be incomplete."
        )
