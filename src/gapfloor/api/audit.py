"""The audit of evaluation code: reading it, watching it run, and the ledger of audits done by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gapfloor.audit import ledger as ledgers
from gapfloor.audit.judgement import formats
from gapfloor.audit.ledger import LedgerVerification, compare_entries, load_registry, verify_ledger
from gapfloor.audit.pages import page
from gapfloor.audit.scan import ScanResult, failed_scan, scan
from gapfloor.audit.trace.observe import TraceResult, trace
from gapfloor.errors import GapfloorError, UsageError
from gapfloor.records.atomic import check_file, write_text_atomically
from gapfloor.tables.readable import ReadableResult, ReportResult
from gapfloor.tables.table import Table


def audit_scan(
    target: str | Path = ".",
    *,
    entry: str | None = None,
    require_explicit: bool = False,
    out: str | Path | None = None,
) -> ScanResult:
    """Find every evaluation path of a repository, with its action rule and where that rule comes from.

    Sources are read as text; nothing is run, imported or followed outside the target. A comment `# gapfloor: ignore` on
    the line that steps the environment accepts a finding.

    Args:
        target: A folder, a Python file or a git directory; with @COMMIT for one commit.
        entry: The command that was used, e.g. "python train.py --config x.yaml": only its script is
            scanned, with these settings.
        require_explicit: Fail when an evaluation path has no rule that is set at the call or by an option, or when none
            was found. In Python also the `failure` of the result.
        out: File for the report: SARIF 2.1.0 (for code-scanning pages) if its name ends in .sarif, JSON if it ends in
            .json, otherwise Markdown.

    Returns:
        The verdict and the evaluation paths. `print` shows the report for people, `to_sarif()` gives SARIF 2.1.0 and
        `unstated()` the paths whose rule nobody set.

    Command line:
        gapfloor audit scan path/to/repository
        gapfloor audit scan . --out audit.sarif --require-explicit

    Examples:
        >>> import gapfloor, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> characters = (folder / "evaluate.py").write_text('''
        ... import gym
        ... from stable_baselines3 import PPO
        ... env = gym.make("procgen:procgen-coinrun-v0", start_level=1000, num_levels=100)
        ... model = PPO.load("model.zip")
        ... obs = env.reset()
        ... for _ in range(1000):
        ...     action, _ = model.predict(obs, deterministic=True)
        ...     obs, reward, done, info = env.step(action)
        ... ''')
        >>> found = gapfloor.audit(folder)
        >>> [(path.rule, path.provenance) for path in found.paths]
        [('argmax', 'explicit-call-site')]
    """
    check_file(out)
    try:
        result = scan(str(target), entry=entry)
    except GapfloorError:
        raise
    except Exception as error:
        # Our own fault: whoever reads the file downstream must find one that says so.
        if out is not None and Path(out).suffix in (".sarif", ".json"):
            _write(Path(out), failed_scan(str(target), error))
        raise
    if require_explicit:
        fresh, failure = result.unstated(), ""
        if not result.paths:
            failure = (
                "No evaluation path was found, so no rule is stated. "
                "Scan the folder that holds the evaluation script."
            )
        elif fresh:
            remedy = "Pass the rule at the evaluation call, or make it an option."
            failure = f"{formats.describe_unstated(fresh)} {remedy}"
        result = replace(result, failure=failure)
    if out is not None:
        _write(Path(out), result)
    return result


def audit_trace(
    command: str | Sequence[str],
    *,
    steps: int | None = None,
    out: str | Path | None = None,
) -> TraceResult:
    """Run your own command and report how its actions were chosen, as observed.

    Steps, draws, maxima, resets and optimiser steps are watched in the process of the command. This runs the command:
    use it only on code that you would run anyway. What the command prints goes to standard error.

    Args:
        command: The program and its arguments. In Python also one text.
        steps: End the run after this many environment steps.
        out: File for the report: JSON if its name ends in .json, otherwise Markdown.

    Returns:
        One row per place in the code where an environment is stepped; `exit_code` is that of the command.

    Command line:
        gapfloor audit trace -- python evaluate.py --checkpoint model.pt
        gapfloor audit trace --steps 1000 -- python train.py

    Examples:
        >>> import gapfloor, pathlib, sys, tempfile
        >>> script = pathlib.Path(tempfile.mkdtemp()) / "evaluate.py"
        >>> characters = script.write_text('''
        ... import gymnasium
        ... env = gymnasium.make("CartPole-v1")
        ... env.reset(seed=1)
        ... for _ in range(5):
        ...     env.step(env.action_space.sample())
        ... ''')
        >>> found = gapfloor.audit.trace([sys.executable, str(script)])
        >>> [(path.environment, path.rule, path.n_steps) for path in found.paths]
        [('CartPole-v1', 'random', 5)]
    """
    check_file(out)
    if steps is not None and steps < 1:
        raise UsageError(f"steps is {steps}: use at least 1.")
    arguments = shlex.split(command) if isinstance(command, str) else [str(part) for part in command]
    found = trace(arguments, most_steps=steps)
    if out is not None:
        _write(Path(out), found)
    return found


@dataclass(frozen=True, repr=False)
class AuditLedger(ReadableResult):
    """Twelve published code bases, classified by hand at pinned commits."""

    row_names = ("entries",)

    counts: ledgers.LedgerCounts
    """The counts of the paper's audit section."""
    entries: tuple[ledgers.LedgerEntry, ...]
    """One per code base, with its evidence."""

    def tables(self) -> list[Table]:
        """The paper's two audit tables."""
        from gapfloor.report.tables.columns import columns_named

        ordered = sorted(self.entries, key=lambda entry: entry.audit_row)
        return [
            Table(
                name=name, columns=tuple(columns_named(key)[0] for key in keys.split()), rows=tuple(entries)
            )
            for name, keys, entries in (
                ("audit", "codebase venue stochastic in_loop", ordered),
                ("commits", "codebase venue commit samples in_loop location", self.entries),
            )
        ]

    def sentences(self) -> list[str]:
        """The footnotes of the table, and the counts in words."""
        return page("ledger.md", counts=self.counts, entries=self.entries).splitlines()


@dataclass(frozen=True, repr=False)
class AuditRegistry(ReportResult):
    """Every audited repository: the twelve of the ledger, those of the package, and yours."""

    row_names = ("entries",)

    entries: tuple[ledgers.RegistryEntry, ...]
    """One per repository."""

    def __repr__(self) -> str:
        return compare_entries(self.entries)


def audit_ledger(
    *,
    registry: bool = False,
    files: Sequence[str | Path] = (),
    only: str = "",
    repos: str | Path | None = None,
    out: str | Path | None = None,
) -> AuditLedger | AuditRegistry | LedgerVerification:
    """Show the code bases that were audited by hand, or check their evidence in clones.

    The ledger has the twelve code bases of the paper, with counts computed from their entries; the registry has further
    ones. Every entry names the lines that show its rule, at a pinned commit.

    Args:
        registry: Show the registry: rule, provenance, in-loop and held out of every audited repository.
        files: A registry file of yours, whose entries are added to the registry.
        only: Show the entries of the registry whose name, repository, rule or provenance contains this text.
        repos: Check every evidence line in this folder of clones: owner+name, owner/name or name.
        out: File for the page of the registry (Markdown).

    Returns:
        The entries of twelve code bases; those of the registry; or one check per evidence line (ok, moved, changed, no
        clone or no commit), whose `is_confirmed` says whether all are ok.

    Command line:
        gapfloor audit ledger
        gapfloor audit ledger --registry --only epsilon-greedy
        gapfloor audit ledger --registry --repos clones

    Examples:
        >>> import gapfloor, tempfile
        >>> ledger = gapfloor.audit.ledger()
        >>> len(ledger.entries), ledger.counts.evaluate_heldout
        (12, 11)
        >>> {entry.rule for entry in gapfloor.audit.ledger(only="epsilon-greedy").entries}
        {'epsilon-greedy'}

        Without clones no line can be confirmed:

        >>> found = gapfloor.audit.ledger(repos=tempfile.mkdtemp())
        >>> found.is_confirmed, found.count("no clone") == len(found.checks)
        (False, True)
    """
    check_file(out)
    own = tuple(Path(file) for file in files)
    if repos is not None:
        if not Path(repos).is_dir():
            raise UsageError(f"There is no folder '{repos}' with clones. Name another folder as repos.")
        return verify_ledger(Path(repos), entries=load_registry(own) if registry or own else None)
    if not (registry or own or only or out):
        return AuditLedger(ledgers.count_ledger(), ledgers.load_ledger())
    found = tuple(
        entry
        for entry in load_registry(own)
        if only.lower() in f"{entry.name} {entry.repo} {entry.rule} {entry.provenance}".lower()
    )
    if not found:
        raise UsageError(
            f"No entry of the registry contains '{only}'. Leave the filter out to see all of them."
        )
    if out is not None:
        write_text_atomically(Path(out), compare_entries(found))
    return AuditRegistry(found)


class Audit:
    """Find the action rule that a code base uses at test time.

    `audit(target)` reads the code; it is short for `audit.scan(target)`. `audit.trace(command)` runs a command and
    watches how its actions are chosen. `audit.ledger()` has the code bases that were classified by hand, and checks
    their evidence in clones.

    Args:
        target: A folder, a Python file or a git directory; with @COMMIT for one commit.
        entry: The command that was used; see `audit.scan`.

    Returns:
        The verdict and the evaluation paths; see `audit.scan`.

    Examples:
        >>> import gapfloor
        >>> ledger = gapfloor.audit.ledger()
        >>> len(ledger.entries), ledger.counts.evaluate_heldout
        (12, 11)
    """

    scan = staticmethod(audit_scan)
    trace = staticmethod(audit_trace)
    ledger = staticmethod(audit_ledger)

    def __call__(self, target: str | Path = ".", *, entry: str | None = None) -> ScanResult:
        return scan(str(target), entry=entry)


audit = Audit()


def _write(path: Path, found: ScanResult | TraceResult) -> None:
    """Write a result in the form that the ending of the name asks for."""
    if path.suffix == ".sarif" and isinstance(found, ScanResult):
        document = found.to_sarif()
    elif path.suffix == ".json":
        document = found.to_dict()
    else:
        write_text_atomically(path, repr(found))
        return
    write_text_atomically(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
