"""What a user says about somebody else's table of episodes: shared by every function that reads one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gapfloor.analysis.table_options import TableOptions, parse_table_options


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """How to read a table of episodes that another tool wrote."""

    columns: str | Mapping[str, str] = ""
    """Columns of the table that have other names, e.g. game=env,episode_return=score."""
    labels: Sequence[str] | Mapping[str, str] = ()
    """A label of every episode that the table does not state, e.g. level_set=test."""
    floor: str = ""
    """The agent or rule whose rows are the floor."""
    decimal: Literal[".", ","] = "."
    """Decimal mark of the numbers in a text file."""
    step: Literal["", "last"] = ""
    """Which step of a learning curve is read: last (default: a learning curve is refused)."""

    def options(self, *, rule: str = "") -> TableOptions:
        """The checked settings; `rule` is short for the label `rule`."""
        return parse_table_options(
            columns=self.columns,
            labels=self.labels,
            rule=rule,
            floor=self.floor,
            decimal=self.decimal,
            step=self.step,
        )
