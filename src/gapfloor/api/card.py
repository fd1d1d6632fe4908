"""Gap cards: what a reader would miss, two cards side by side, and a card as part of another document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.report.card_check import CardGap, check_card, read_card
from gapfloor.report.card_comparison import compare_cards
from gapfloor.report.model_card import model_card
from gapfloor.text_tables import ReadableResult, TextTable


@dataclass(frozen=True, repr=False)
class CardCheck(ReadableResult):
    """What a card leaves out."""

    row_names = ("missing",)

    file: Path
    """The card."""
    missing: tuple[CardGap, ...]
    """What a reader needs and does not find; empty if the card is complete."""

    @property
    def is_complete(self) -> bool:
        """Whether a reader finds everything."""
        return not self.missing

    def to_dict(self) -> dict[str, Any]:
        """The document of `gapfloor card check --json`."""
        return {"complete": self.is_complete, "missing": jsonable(self.missing)}

    def tables(self) -> list[TextTable]:
        """None: the sentences say everything."""
        return []

    def table(self) -> TextTable:
        """Field, what a reader cannot know, and what supplies it."""
        rows = [[gap.field, gap.why, gap.remedy] for gap in self.missing]
        return ["missing", "a reader cannot know", "supplied by"], rows

    def sentences(self) -> list[str]:
        """Three lines for each entry that is missing."""
        if self.is_complete:
            return [
                f"{self.file}: complete. A reader can tell which policy was measured, where chance lies and what was "
                "tested."
            ]
        return [
            line
            for gap in self.missing
            for line in (
                f"missing: {gap.field}",
                f"  A reader cannot know {gap.why}.",
                f"  Supplied by: {gap.remedy}.",
            )
        ]


class MarkdownText(str):
    """Markdown, which a notebook shows as such."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def card_check(file: str | Path) -> CardCheck:
    """What a reader of a gap card would still be missing.

    Args:
        file: The card, Markdown or JSON: the `card.md` or `card.json` of a report, or anyone's with the same labels.

    Returns:
        Each missing entry with what a reader cannot know without it, and the column or option that supplies it.

    Examples:
        >>> import gapfloor, pathlib, tempfile
        >>> card = pathlib.Path(tempfile.mkdtemp()) / "card.md"
        >>> characters = card.write_text("- **Action rule:** sampled")
        >>> found = gapfloor.card_check(card)
        >>> found.is_complete, found.missing[0].field
        (False, 'level sets')
    """
    return CardCheck(Path(file), tuple(check_card(file)))


def card_compare(before: str | Path, after: str | Path) -> MarkdownText:
    """The numbers of two gap cards side by side, as a Markdown table for a pull request.

    The two cards are not tested against each other.

    Args:
        before: A `card.json` that `write_report` wrote.
        after: Another one.

    Returns:
        Markdown, with one line per game, budget and rule of either card.

    Examples:
        >>> import gapfloor, tempfile
        >>> import pyarrow as pa
        >>> rows = [
        ...     {"game": "heist", "agent": agent, "seed": seed, "rule": rule, "level_set": level_set,
        ...      "episode_return": float(seed + episode)}
        ...     for agent, rule in (("ppo", "sampled"), ("random", "uniform"))
        ...     for seed in range(3) for level_set in ("train", "test") for episode in range(4)
        ... ]
        >>> folder = tempfile.mkdtemp()
        >>> report = gapfloor.write_report(pa.Table.from_pylist(rows), out=folder, formats="card", progress=False)
        >>> text = gapfloor.card_compare(f"{folder}/card.json", f"{folder}/card.json")
        >>> "| heist |" in text
        True
    """
    cards = [read_card(file) for file in (before, after)]
    with _whole(f"{before} or {after}"):
        return MarkdownText(compare_cards(*cards))


def card_export(file: str | Path, *, name: str, format: Literal["hf"] = "hf") -> MarkdownText:
    """A gap card as part of another document: the README.md of a Hugging Face model repository.

    Args:
        file: A `card.json` that `write_report` wrote.
        name: Name of the model, e.g. `owner/coinrun-impala`.
        format: `hf`: a Hugging Face model card, with the results as its model index.

    Returns:
        The text of the document.

    Examples:
        >>> import gapfloor, pathlib, tempfile
        >>> import pyarrow as pa
        >>> rows = [
        ...     {"game": "heist", "agent": agent, "seed": seed, "rule": rule, "level_set": level_set,
        ...      "episode_return": float(seed + episode)}
        ...     for agent, rule in (("ppo", "sampled"), ("random", "uniform"))
        ...     for seed in range(3) for level_set in ("train", "test") for episode in range(4)
        ... ]
        >>> folder = tempfile.mkdtemp()
        >>> report = gapfloor.write_report(pa.Table.from_pylist(rows), out=folder, formats="card", progress=False)
        >>> text = gapfloor.card_export(f"{folder}/card.json", name="me/heist")
        >>> text.splitlines()[0]
        '---'
    """
    if format != "hf":
        raise UsageError(f"format={format!r} is not known: use hf, a Hugging Face model card.")
    card = read_card(file)
    with _whole(file):
        return MarkdownText(model_card(card, name=name))


@contextmanager
def _whole(file: str | Path) -> Iterator[None]:
    """A card that lacks what `gapfloor report` always writes is the user's mistake."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"{file} is not a whole gap card ({type(error).__name__}: {error}): gapfloor report writes card.json."
        ) from None
