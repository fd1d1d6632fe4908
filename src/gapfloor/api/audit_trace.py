"""Which action rule a command uses, observed while it runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.audit.scan import ScanResult
from gapfloor.audit.trace.comparison import scan_traced_command, trace_document, trace_markdown
from gapfloor.audit.trace.observe import TraceResult, trace
from gapfloor.text_tables import ReportResult


@dataclass(frozen=True, repr=False)
class AuditTrace(ReportResult):
    """What was observed, next to what the scanner reads in the code."""

    row_names = ("paths",)

    observed: TraceResult
    """Steps, rules, environments and optimiser steps of the run."""
    static: ScanResult | None
    """The scan of the folder; None where there was none."""

    def to_dict(self) -> dict[str, Any]:
        """The document of `gapfloor audit trace --json`."""
        return trace_document(self.observed, self.static)

    def __repr__(self) -> str:
        return trace_markdown(self.observed, self.static)


def audit_trace(command: str | Sequence[str], *, steps: int | None = None, scan: bool = True) -> AuditTrace:
    """Run a command of yours and report how its actions were chosen, as observed.

    Steps, draws, maxima, resets and optimiser steps are watched in the process of the command. This runs the command:
    use it only on code that you would run anyway. What the command prints goes to standard error.

    Args:
        command: The program and its arguments, e.g. `"python evaluate.py --seed 1"` or a list.
        steps: End the run after this many environment steps.
        scan: Scan the current folder too, for comparison.

    Returns:
        One row per place in the code where an environment is stepped; `observed.exit_code` is that of the command.

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
        >>> found = gapfloor.audit.trace([sys.executable, str(script)], scan=False)
        >>> [(path.environment, path.rule, path.n_steps) for path in found.observed.paths]
        [('CartPole-v1', 'random', 5)]
    """
    arguments = shlex.split(command) if isinstance(command, str) else [str(part) for part in command]
    observed = trace(arguments, most_steps=steps)
    return AuditTrace(observed, scan_traced_command(observed) if scan else None)
