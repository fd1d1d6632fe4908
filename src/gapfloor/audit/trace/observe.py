"""Running the user's own command with hooks, and turning what they saw into observed paths.

This is the only part of the audit that runs foreign code, and only because the user typed the command.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gapfloor.audit.pages import page
from gapfloor.errors import UsageError
from gapfloor.leftovers import temporary_folder
from gapfloor.tables.readable import ReportResult

#: Share of steps that must agree before a rule is called observed.
_AGREEMENT = 0.95


@dataclass(frozen=True)
class ObservedPath:
    """One line of the user's code that stepped one environment."""

    file: str
    line: int
    function: str
    environment: str
    rule: str
    """sampled, argmax, noisy (the maximum of something with noise), deterministic (no draw was seen), epsilon-greedy,
    random or unresolved."""
    n_steps: int
    n_episodes: int
    n_policy_versions: int
    """How many states of the weights the steps at this line saw."""
    in_loop: bool
    """Whether weights changed while the environment lived on between two resets."""
    evidence: tuple[str, ...]
    n_random: int = 0
    """How many actions were drawn without the policy."""
    called_from: tuple[str, ...] = ()
    """The lines that called the stepping one, the nearest first."""


@dataclass(frozen=True, repr=False)
class TraceResult(ReportResult):
    """Everything that was observed in one run of a command."""

    row_names = ("paths",)

    command: tuple[str, ...]
    exit_code: int
    paths: tuple[ObservedPath, ...]
    n_updates: int
    unseen: tuple[str, ...]
    """What the hooks could not watch."""

    @property
    def failure(self) -> str:  # type: ignore[override]
        """How the command ended, unless it ended well."""
        words = f"The command ended with exit code {self.exit_code}; the report may be incomplete."
        return words if self.exit_code else ""

    def to_dict(self) -> dict[str, Any]:
        """The document of `gapfloor audit trace --json`."""
        return {"schema": "gapfloor-audit-trace/2"} | asdict(self)

    def __repr__(self) -> str:
        return page("trace.md", result=self, command=" ".join(self.command))


def trace(command: list[str], *, most_steps: int | None = None) -> TraceResult:
    """Run `command` and observe how its actions are chosen.

    Args:
        command: The program and its arguments; it runs in the current folder, with its own output.
        most_steps: End the run after this many environment steps; by default it runs to its end.
    """
    if not command:
        raise UsageError("There is no command to trace. Write: gapfloor audit trace -- python evaluate.py")
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"The program '{command[0]}' was not found. Give a command that runs here.")
    with temporary_folder("trace") as folder:
        hooks = Path(__file__).with_name("hooks.py").read_text(encoding="utf-8")
        (Path(folder) / "sitecustomize.py").write_text(hooks, encoding="utf-8")
        out = Path(folder) / "seen"
        search = [folder, *filter(None, [os.environ.get("PYTHONPATH", "")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(search), "GAPFLOOR_TRACE_OUT": str(out)}
        if most_steps is not None:
            environment["GAPFLOOR_TRACE_STEPS"] = str(most_steps)
        # Standard output belongs to the report; what the command prints goes to standard error.
        done = subprocess.run([program, *command[1:]], env=environment, check=False, stdout=sys.stderr)
        seen = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("seen.*"))]
    return _result(tuple(command), done.returncode, seen)


def _result(command: tuple[str, ...], exit_code: int, seen: list[dict[str, Any]]) -> TraceResult:
    paths: list[ObservedPath] = []
    unseen: list[str] = []
    for document in seen:
        paths.extend(map(_observed, document["sites"]))
        unseen.extend(document["unseen"])
    if not seen:
        unseen.append("the command did not start Python, or ended without its exit handlers")
    return TraceResult(
        command=command,
        exit_code=exit_code,
        paths=tuple(sorted(paths, key=lambda path: (path.file, path.line))),
        n_updates=sum(document["updates"] for document in seen),
        unseen=tuple(dict.fromkeys(unseen)),
    )


def _observed(site: dict[str, Any]) -> ObservedPath:
    places = sorted(site["places"].items(), key=lambda item: -item[1])
    return ObservedPath(
        file=_short(site["place"][0]),
        line=site["place"][1],
        function=site["place"][2],
        environment=site["environment"],
        rule=decide_observed(site),
        n_steps=site["steps"],
        n_episodes=site["episodes"],
        n_policy_versions=len(set(site["versions"])),
        in_loop=site["spanning"] > 0,
        evidence=tuple(f"{_short(text)} ({count} of {site['steps']} steps)" for text, count in places[:4]),
        n_random=site["random"],
        called_from=tuple(f"{_short(file)}:{line}" for file, line, _ in site["callers"]),
    )


def _short(text: str) -> str:
    here = str(Path.cwd()) + os.sep
    return text.replace(here, "")


def decide_observed(site: dict[str, Any]) -> str:
    """The rule that the steps at one line followed.

    >>> decide_observed({"steps": 100, "matched": {"sampled": 100}, "drawn": {"sampled": 100}, "quiet": 0})
    'sampled'
    >>> decide_observed({"steps": 100, "matched": {}, "drawn": {}, "quiet": 100})
    'deterministic'
    """
    steps = site["steps"]
    share = {kind: count / steps for kind, count in site["matched"].items()}
    drawn = {kind: count / steps for kind, count in site["drawn"].items()}
    if share.get("sampled", 0.0) >= _AGREEMENT and not site.get("random"):
        return "sampled"
    if share.get("noisy", 0.0) >= _AGREEMENT:
        return "noisy"
    if site.get("random") and share.get("argmax", 0.0) > 0:
        return "epsilon-greedy"
    if share.get("argmax", 0.0) >= _AGREEMENT and share.get("random", 0.0) < _AGREEMENT:
        return "argmax"
    if share.get("random", 0.0) >= _AGREEMENT:
        return "random"
    if site["quiet"] / steps >= _AGREEMENT:
        return "deterministic"
    is_mixed = share.get("argmax", 0.0) > 0 and share.get("random", 0.0) > 0
    if is_mixed and share["argmax"] + share["random"] >= _AGREEMENT:
        return "epsilon-greedy"
    if drawn.get("sampled", 0.0) >= _AGREEMENT and not share:
        return "sampled"  # the draw is squashed or scaled before it reaches the environment
    return "unresolved"
