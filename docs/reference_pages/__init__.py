"""The pages of docs/reference, generated from the declarations.

Each module renders the pages of one kind of declaration; `render_all` returns every page as text.
`python -m docs.reference_pages` writes them, and tests/docs compares them with the files.
"""

from __future__ import annotations

from pathlib import Path

from docs.reference_pages import (
    clients,
    command_line,
    evidence,
    faults,
    guarantees,
    known_bugs,
    metrics,
    mutants,
    scenarios,
    settings,
    states,
)

FOLDER = Path(__file__).parents[1] / "reference"
COMMAND = "python -m docs.reference_pages"


def render_all() -> dict[str, str]:
    """Return the text of every generated page by its path below docs/reference."""
    pages: dict[str, str] = {}
    modules = (
        *(guarantees, faults, scenarios, clients, mutants, known_bugs),
        *(evidence, states, command_line, settings, metrics),
    )
    for module in modules:
        pages |= module.render()
    return pages


def write_all() -> list[Path]:
    """Write every page that differs from its declarations. Returns the written files."""
    written = []
    for name, text in render_all().items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            written.append(path)
    return written
