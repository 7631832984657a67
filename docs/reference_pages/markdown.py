"""Markdown: headings, tables, code spans and links of the generated pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def page(title: str, about: str, *sections: str) -> str:
    """A page with its title and a paragraph that says what it answers."""
    return "\n\n".join([f"# {title}", about, *filter(None, sections)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; line ends and bars in cells are escaped."""
    lines = [_row(head), "|" + "---|" * len(head)]
    return "\n".join([*lines, *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def bullets(items: Iterable[str], *, indent: int = 0) -> str:
    return "\n".join(f"{' ' * indent}- {item}" for item in items)


def code(text: object) -> str:
    return f"`{text}`"


def codes(names: Iterable[object]) -> str:
    return ", ".join(map(code, names))


def sentence(text: str) -> str:
    """`text` with a full stop, and a capital letter unless it begins with code."""
    text = " ".join(text.split())
    if re.match(r"[a-z]+[ ,']", text):
        text = text[0].upper() + text[1:]
    return f"{text}{'' if text.endswith(('.', '?', '!')) else '.'}"


def setting(name: str, value: object) -> str:
    """`name=value` as code; a flag that is on is its name."""
    if value is True:
        return code(name)
    if isinstance(value, tuple | list):
        shown = ",".join(map(str, value))
    elif isinstance(value, dict):
        shown = ",".join(f"{key}:{member}" for key, member in value.items())
    else:
        shown = f"{value:g}" if isinstance(value, float) else str(value)
    return code(f"{name}={shown}")
