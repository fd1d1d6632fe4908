"""Progress of work that takes a while: the running mean against the floor, and the time left.

On a terminal and in a notebook this is one line that is replaced, and disappears at the end. Elsewhere nothing is
printed, or, with `progress=True` as commands have it, one plain line per finished group of cells.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from gapfloor.errors import UsageError
from gapfloor.escape import clean_text, printable_text
from gapfloor.play.cell import CellSpec
from gapfloor.play.workers import Progress

if TYPE_CHECKING:
    from gapfloor.training.spec import TrainingSpec
    from gapfloor.training.trainer import Tick

#: Seconds between two updates of the line.
_EVERY = 0.2

#: Game, run or reference, rule and level set.
_Place = tuple[str, str, str, str]


class ProgressLine:
    """How much of some work is done, with words, on one line that is replaced; nothing where nobody is watching."""

    def __init__(self, total: int, unit: str) -> None:
        self._total, self._unit = total, unit
        self._started, self._shown, self._width = time.monotonic(), 0.0, 0
        self.is_shown = is_watched()

    def show(self, done: int, describe: Callable[[], str]) -> None:
        """Show that so much is done; the words are only made where somebody sees them."""
        now = time.monotonic()
        if not self.is_shown or (now - self._shown < _EVERY and done < self._total):
            return
        self._shown, spent = now, now - self._started
        left = f", {duration(spent / done * (self._total - done))} left" if done < self._total else ""
        text = clean_text(f"{done:,}/{self._total:,} {self._unit}, {duration(spent)}{left}  {describe()}")
        width = shutil.get_terminal_size().columns - 1
        if sys.stderr.isatty() and len(text) > width:
            # A line that is wider than the terminal would be continued below, and could not be replaced.
            text = text[: width + 1].rpartition(" ")[0]
        _write(text.ljust(self._width), before="\r")
        self._width = len(text)

    def close(self) -> None:
        """Remove the line."""
        if self._width:
            _write("", before=f"\r{' ' * self._width}\r")
            self._width = 0


class LiveProgress(Progress):
    """Shows the running mean of what is played, and the floor's where it is known.

    `plain_lines` says whether a line is printed per place where nobody is watching.
    """

    def __init__(self, *, plain_lines: bool) -> None:
        self._plain_lines = plain_lines and not is_watched()
        self._returns: defaultdict[_Place, list[float]] = defaultdict(list)
        self._cells_left: Counter[_Place] = Counter()
        self._line = ProgressLine(0, "episodes")
        self._started = time.monotonic()

    def start(self, cells: Sequence[CellSpec]) -> None:
        """Begin a line for these cells."""
        self._cells_left.update(map(_place, cells))
        self._line.close()
        self._done = 0
        self._line = ProgressLine(sum(cell.design.episodes for cell in cells), "episodes")

    def episode(self, cell: CellSpec, episode_return: float) -> None:
        """Count one episode."""
        place = _place(cell)
        self._returns[place].append(episode_return)
        self._done += 1
        self._line.show(self._done, lambda: self._describe(place))

    def cell(self, cell: CellSpec) -> None:
        """Where nobody is watching, print a line when all draws of a place are done."""
        place = _place(cell)
        self._cells_left[place] -= 1
        if self._plain_lines and not self._cells_left[place]:
            _write(f"[{time.monotonic() - self._started:6.1f} s] {self._describe(place)}\n")

    def _describe(self, place: _Place) -> str:
        game, who, rule, level_set = place
        named = f"{game} {who} {rule} {level_set}" if who != rule else f"{game} {rule} {level_set}"
        text = f"{named} mean {fmean(self._returns[place]):.2f}"
        floor = (game, "uniform", "uniform", level_set)
        if place != floor and self._returns[floor]:
            so_far = " so far" if self._cells_left[floor] else ""
            text += f" (floor{so_far} {fmean(self._returns[floor]):.2f})"
        return text

    def close(self) -> None:
        """Remove the line."""
        self._line.close()


class TrainingProgress:
    """A line on a terminal or in a notebook, and one every few updates elsewhere."""

    def __init__(self, spec: TrainingSpec) -> None:
        from gapfloor.analysis.known_floors import find_entry, shipped_registry

        self._spec = spec
        self._line = ProgressLine(spec.n_updates * spec.hyperparameters.batch, "steps")
        self._shown_at = 0
        self._floor = ""
        with contextlib.suppress(UsageError):
            entry = find_entry(shipped_registry().entries, spec.game, spec.mode)
            self._floor = f" (floor about {entry.floor.mean:.2f})"

    def close(self) -> None:
        """Remove the line."""
        self._line.close()

    def show(self, tick: Tick) -> None:
        """Show one update."""
        row = tick.row
        text = (
            f"in-loop return {row.in_loop_return:6.2f}{self._floor}  entropy {row.entropy_nats:.3f}  "
            f"{tick.steps_per_second:4.0f} steps/s"
        )
        if self._line.is_shown:
            self._line.show(row.steps, lambda: text)
        elif row.iteration in (1, tick.n_updates) or row.iteration - self._shown_at >= tick.n_updates / 50:
            self._shown_at = row.iteration
            _write(f"{self._spec.run} {row.steps:>10,} steps  {text}  {duration(tick.seconds_left)} left\n")


def duration(seconds: float) -> str:
    """A duration in its two largest units.

    >>> duration(59.7), duration(3725)
    ('1 min', '1 h 2 min')
    """
    whole = round(seconds)
    parts: list[str] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if whole >= size or (name == "s" and not parts):
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])


@contextlib.contextmanager
def showing(progress: Progress | bool | None) -> Iterator[Progress]:
    """What a function reports to: the caller's own, a line (None), also plain lines (True), or nothing (False)."""
    if progress is False or (progress is None and not is_watched()):
        yield Progress()
    elif progress is None or progress is True:
        with contextlib.closing(LiveProgress(plain_lines=progress is True)) as live:
            yield live
    else:
        yield progress


def step_teller(progress: Callable[[str], None] | bool | None) -> Callable[[str], None]:
    """What a function tells its steps to, in words: the caller's own, a line each, or nothing.

    None stands for lines where somebody is watching, True for lines everywhere.
    """
    if callable(progress):
        return progress
    if progress is False or (progress is None and not is_watched()):
        return lambda words: None
    return lambda words: _write(f"{words} ...\n")


def is_watched() -> bool:
    """Whether somebody can see standard error now: it is a terminal, or the output of a notebook's cell."""
    return sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    """Whether the code runs in a Jupyter kernel, whose standard error is shown below the cell."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and hasattr(found, "kernel")


def _write(text: str, *, before: str = "") -> None:
    sys.stderr.write(before + printable_text(text))
    sys.stderr.flush()


def _place(cell: CellSpec) -> _Place:
    return cell.engine.game, cell.run.name, cell.rule, cell.level_set
