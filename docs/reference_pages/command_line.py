"""The page of the command line, from the declarations of its commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from docs.reference_pages.markdown import code, page, table
from urteil.cli.main import urteil

ABOUT = """\
Every command with its arguments and options, as `--help` prints them. Exit codes: 0 PASS, 1 FAIL,
2 UNKNOWN, 254 wrong usage, 255 a failure of the lab. `-h` and `--help` exist everywhere. This page
is generated from `urteil/cli/` by `make docs`."""

_STATED_DEFAULT = re.compile(r"\s*\[default: (.+?)\]$")


def render() -> dict[str, str]:
    context = click.Context(urteil, info_name="urteil")
    sections = [_section(command, context) for command, context in _commands(urteil, context)]
    return {"command-line.md": page("Command line", ABOUT, *sections)}


def _commands(
    group: click.Group, context: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    for name in sorted(group.commands):
        command = group.commands[name]
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _commands(command, inner)
        else:
            yield command, inner


def _section(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## {context.command_path}", f"    {usage}"]
    if command.help:
        parts.append(_text(command.help))
    rows = [_option(parameter, context) for parameter in command.params
            if isinstance(parameter, click.Option) and not parameter.hidden]  # fmt: skip
    if rows:
        parts.append(table(("option", "meaning", "default"), rows))
    return "\n\n".join(parts)


def _text(help_text: str) -> str:
    """The help as Markdown: paragraphs joined, blocks that keep their lines as code."""
    paragraphs = []
    for paragraph in help_text.strip().split("\n\n"):
        lines = paragraph.replace("\b", "").strip("\n").splitlines()
        if "\b" in paragraph:
            paragraphs.append("\n".join(f"    {line.strip()}" for line in lines if line.strip()))
        else:
            paragraphs.append(" ".join(line.strip() for line in lines))
    return "\n\n".join(paragraphs)


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    record = option.get_help_record(context)
    assert record is not None
    text = " ".join((option.help or "").split())
    default = ""
    if stated := _STATED_DEFAULT.search(text):
        text, default = text[: stated.start()], stated[1]
    elif option.show_default and not option.is_flag:
        default = code(option.get_default(context, call=False))
    if isinstance(option.type, click.IntRange | click.FloatRange):
        text = f"{text} ({_range(option.type)})"
    return code(record[0].replace(" RANGE", "")), text.strip(), default


def _range(number: click.IntRange | click.FloatRange) -> str:
    low, high = number.min, number.max
    least = f"above {low}" if number.min_open else f"at least {low}"
    return f"{low} to {high}" if high is not None and low is not None else least
