"""The lines that a run executed, read from its files of marks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from urteil.suites.coverage.line_files import digest_of, marks_path
from urteil.suites.coverage.probes import executable_lines, lines_run
from urteil.suites.source_hook import BROKER, relative


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A source file of the broker: `executable` are the lines that Python can execute."""

    name: str
    digest: str
    text: str
    executable: list[int]


def source_file(path: Path) -> SourceFile:
    text = path.read_text()
    return SourceFile(
        name=relative(path),
        digest=digest_of(text),
        text=text,
        executable=list(executable_lines(text)),
    )


def source_files() -> Iterator[SourceFile]:
    """All source files of the broker, by name."""
    for path in sorted(BROKER.rglob("*.py")):
        yield source_file(path)


def collect(folder: Path) -> dict[str, tuple[str, list[int]]]:
    """Digest and executed lines of each source file that a broker imported.

    Files that changed since then are absent.
    """
    collected = {}
    for path in sorted(BROKER.rglob("*.py")):
        text = path.read_text()
        marks = marks_path(folder, relative(path), digest := digest_of(text))
        if marks.exists():
            collected[relative(path)] = digest, sorted(lines_run(text, marks.read_bytes()))
    return collected
