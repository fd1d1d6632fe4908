"""One page per command, made from the command's own help, so that page and program cannot differ."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path

import click

from gapfloor.cli.generate import terminal_options
from gapfloor.cli.main import cli

#: Command -> pages that explain it at length.
MORE = {
    "floor": ("quickstart.md", "concepts.md", "registry.md", "columns.md"),
    "known-floor": ("registry.md",),
    "evaluate": ("quickstart.md", "my-policy.md", "columns.md"),
    "sweep": ("compare.md",),
    "training-curve": ("compare.md",),
    "compare": ("compare.md",),
    "train": ("my-policy.md",),
    "levels": ("compare.md",),
    "calibrate": ("concepts.md",),
    "analyse": ("my-table.md", "methods.md", "columns.md"),
    "plan": ("plan.md",),
    "power": ("plan.md",),
    "report": ("my-table.md", "columns.md"),
    "replay": ("my-environment.md",),
    "verify": ("concepts.md",),
    "study": ("studies.md",),
    "audit": ("audit.md", "audit-registry.md"),
    "cka": ("compare.md",),
    "doctor": ("install.md", "my-environment.md"),
}

#: A default that the help states in words, e.g. "(default: one per core)" or "[default: the store's own]".
_TOLD = re.compile(r"(?:;|\(|\[|(?<=\.))\s*[Dd]efault: ([^.;)\]]+)[.)\]]*")


@dataclass(frozen=True)
class Help:
    """A command's help, taken apart."""

    sentences: str
    examples: tuple[str, ...]


def command_pages(docs: Path) -> dict[str, str]:
    """Path below `docs` -> Markdown: an index and one page per command, links only to pages that exist."""
    names = cli.list_commands(click.Context(cli))
    pages = {f"commands/{name}.md": _page(name, docs) for name in names}
    summaries = {name: (section, words) for name, section, words in cli.summaries()}  # type: ignore[attr-defined]
    rows = "\n".join(
        f"| {summaries[name][0]} | [`gapfloor {name}`]({name}.md) | {summaries[name][1]} |" for name in names
    )
    shared = "\n".join(f"| `{option.opts[0]}` | {option.help} |" for option in terminal_options())
    pages["commands/index.md"] = (
        "# Commands\n\nEvery page is made from the command's own help.\n\n| | command | does |\n|---|---|---|\n"
        + rows
        + "\n\nEvery command also has these options:\n\n| option | meaning |\n|---|---|\n"
        + shared
        + "\n\n"
        "Exit codes: 0 done, 1 a check failed, 2 wrong use, 3 an error in gapfloor itself, 130 stopped by Ctrl-C,\n"
        "143 stopped by SIGTERM. A message about wrong use is one or two sentences, and no incomplete file is left.\n"
    )
    return pages


def read_help(command: click.Command) -> Help:
    """Sentences and examples of a command's help; click's marks for breaks are taken out."""
    text = inspect.cleandoc(command.help or "").split("\f")[0]
    before, _, after = text.partition("Examples:")
    examples = tuple(line.strip() for line in after.splitlines() if line.strip().startswith("gapfloor "))
    return Help(before.replace("\b", "").strip(), examples)


def _page(name: str, docs: Path) -> str:
    context = click.Context(cli, info_name="gapfloor")
    command = cli.get_command(context, name)
    assert command is not None
    parts = [f"# gapfloor {name}", "", *_section(command, f"gapfloor {name}")]
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            assert found is not None
            parts += [f"## gapfloor {name} {sub}", "", *_section(found, f"gapfloor {name} {sub}")]
    more = [page for page in MORE.get(name, ()) if (docs / page).exists()]
    if more:
        parts += ["## More", "", *[f"- [{_title(docs / page)}](../{page})" for page in more], ""]
    return "\n".join(parts)


def _section(command: click.Command, path: str) -> list[str]:
    words = read_help(command)
    context = click.Context(command, info_name=path)
    lines = [_as_markdown(words.sentences), "", "```text", _usage(command, context, path), "```", ""]
    if isinstance(command, click.Group):
        rows = [
            f"| [`{sub}`](#{_anchor(f'{path} {sub}')}) | {_sub(command, context, sub).get_short_help_str(120)} |"
            for sub in command.list_commands(context)
        ]
        return [*lines, "| subcommand | does |", "|---|---|", *rows, "", *_examples(words)]
    arguments = getattr(command, "words", {})
    named = [
        param for param in command.params if isinstance(param, click.Argument) and arguments.get(param.name)
    ]
    lines += [f"- `{param.make_metavar(context).strip('[].')}`: {arguments[param.name]}" for param in named]
    lines += [""] * bool(named)
    options = [param for param in command.params if isinstance(param, click.Option)]
    if options:
        lines += ["| option | value | default | meaning |", "|---|---|---|---|"]
        lines += [_option_row(option, context) for option in options]
        lines.append("")
    return [*lines, *_examples(words)]


def _sub(group: click.Group, context: click.Context, name: str) -> click.Command:
    found = group.get_command(context, name)
    assert found is not None
    return found


def _usage(command: click.Command, context: click.Context, path: str) -> str:
    return f"{path} " + " ".join(command.collect_usage_pieces(context))


def _examples(words: Help) -> list[str]:
    if not words.examples:
        return []
    return ["Examples:", "", "```console", *[f"$ {line}" for line in words.examples], "```", ""]


def _option_row(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f"`{_value(option, context)}`"
    meaning = _without_default(option.help or "")
    if meaning and meaning[-1] not in ".)":
        meaning += "."
    if option.envvar:
        meaning += f" Environment variable: `{option.envvar}`."
    if option.multiple and "repeated" not in meaning:
        meaning += " May be repeated."
    return f"| {names} | {value} | {default_words(option, context)} | {_cell(meaning)} |"


def _value(option: click.Option, context: click.Context) -> str:
    """What is written after an option; choices as a list, since a bar would end the cell."""
    if isinstance(option.type, click.Choice):
        return ", ".join(map(str, option.type.choices))
    return _cell(option.make_metavar(context)).replace("\\|", " or ")


def default_words(option: click.Option, context: click.Context) -> str:
    """An option's default as the page prints it."""
    if option.required:
        return "required"
    if option.is_flag:
        return "off"
    told = _TOLD.search(option.help or "")
    if told:
        return _cell(told.group(1))
    default = option.get_default(context, call=False)
    if default is None or default == () or "UNSET" in repr(default).upper():
        return "none"
    if isinstance(default, tuple | list):
        return ", ".join(f"`{item}`" for item in default)
    return f"`{default}`"


def _without_default(text: str) -> str:
    return " ".join(_TOLD.sub(" ", text).split())


def _as_markdown(text: str) -> str:
    return text.replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
