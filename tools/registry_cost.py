"""What measuring a registry took: CPU seconds per environment, kept in the log of the store over resumed runs."""

from __future__ import annotations

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from gapfloor.records.atomic import write_text_atomically


class RegistryCost:
    """CPU seconds by family and environment.

    Only one process is timed: the CPU time of workers is not known before they end.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / "log" / "registry-cost.json"
        self.seconds: dict[str, dict[str, float]] = defaultdict(dict)
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self.seconds.update(json.loads(self._path.read_text(encoding="utf-8")))

    @contextlib.contextmanager
    def timing(self, family: str, environment: str) -> Iterator[None]:
        """Add what the body takes, also where it is interrupted."""
        started = time.process_time()
        try:
            yield
        finally:
            of_family = self.seconds.setdefault(family, {})
            taken = of_family.get(environment, 0.0) + time.process_time() - started
            of_family[environment] = round(taken, 2)
            write_text_atomically(self._path, json.dumps(self.seconds, indent=1) + "\n")

    def sentence(self) -> str:
        """The sum, and that of each family; empty where nothing was timed."""
        sums = {family: sum(of_family.values()) for family, of_family in self.seconds.items()}
        if not sums:
            return ""
        parts = ", ".join(f"{family} {seconds:,.0f}" for family, seconds in sums.items())
        return f"CPU seconds of all runs with one worker: {sum(sums.values()):,.0f} ({parts})."
