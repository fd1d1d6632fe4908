"""The results that commands print as JSON, by command, and what their fields mean.

A meaning is the sentence below the field in the source, so documentation and code are one text.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """Dataclasses that one command gives as JSON."""

    title: str
    words: str
    module: str
    names: tuple[str, ...] = ()
    """Empty: every public dataclass of the module."""

    @property
    def classes(self) -> list[type]:
        """The dataclasses of the section."""
        module = importlib.import_module(self.module)
        found = [
            cls
            for name, cls in vars(module).items()
            if inspect.isclass(cls) and cls.__module__ == self.module and dataclasses.is_dataclass(cls)
            and not name.startswith("_") and (not self.names or name in self.names)
        ]  # fmt: skip
        missing = set(self.names) - {cls.__name__ for cls in found}
        if missing:
            raise LookupError(f"{self.module} has no {', '.join(sorted(missing))}")
        return found


SECTIONS = (
    Section(
        "every row",
        "The rows of every command. `analyse`, `floor`, `evaluate`, `compare`, `sweep` and `training-curve` have the "
        "same ones; a section below lists only what a command adds.",
        "gapfloor.analysis.rows",
    ),
    Section(
        "every row: an estimate",
        "A number with its error and its interval.",
        "gapfloor.statistics.conventions",
        ("Estimate",),
    ),
    Section(
        "floor and evaluate",
        "`gapfloor floor --json`, `gapfloor evaluate --json`, and what `gapfloor.floor` and "
        "`gapfloor.evaluate` return.",
        "gapfloor.analysis.evaluation",
    ),
    Section(
        "analyse",
        "`gapfloor analyse --json`; `--out` writes the same rows as one CSV file per table.",
        "gapfloor.analysis.results",
    ),
    Section("analyse: tiers", "The points of `sweep` in a row of the screen.", "gapfloor.statistics.screen"),
    Section(
        "leaked levels",
        "The table `leaks` of a report.",
        "gapfloor.analysis.leaked",
        ("LeakedGap",),
    ),
    Section("levels", "`gapfloor levels --json` and `leakage.json`.", "gapfloor.levels.overlap"),
    Section(
        "sweep and training-curve",
        "`gapfloor sweep --json` and `gapfloor training-curve --json`: rows of one checkpoint at a temperature or a "
        "training step.",
        "gapfloor.analysis.checkpoints",
    ),
    Section("compare", "`gapfloor compare --json`.", "gapfloor.analysis.comparison"),
    Section("cka", "A record of `results/cka/*.json`.", "gapfloor.report.cka"),
    Section("train", "A row of a run's `log.parquet`.", "gapfloor.training.log", ("LogRow",)),
    Section("doctor", "`gapfloor doctor GAME --json`.", "gapfloor.engines.contract"),
)
