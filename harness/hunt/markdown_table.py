"""Markdown tables for terminals and files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with columns of one width. White space in a cell becomes a blank."""
    table = [[" ".join(cell.split()) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[n]) for row in table) for n in range(len(heads))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
             for row in table]  # fmt: skip
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"
