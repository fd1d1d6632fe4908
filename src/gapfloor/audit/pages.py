"""What the audit writes: templates of `audit/data`, filled."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from gapfloor.escape import escape_markdown, markdown_code
from gapfloor.settings import shipped_text

if TYPE_CHECKING:
    from jinja2 import Template


def page(name: str, **values: Any) -> str:
    """A template, filled; it escapes text from outside by `md`, and by `code` where it is code."""
    return _template(name).render(values).rstrip() + "\n"


@cache
def _template(name: str) -> Template:
    import jinja2

    made = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.do"]
    )
    made.filters |= {"md": escape_markdown, "code": markdown_code, "yes": yes_or_no}
    return made.from_string(shipped_text(f"audit/data/{name}.j2"))


def yes_or_no(value: bool | str | None) -> str:
    """An answer as it is printed."""
    return value if isinstance(value, str) else {True: "yes", False: "no", None: "?"}[value]
