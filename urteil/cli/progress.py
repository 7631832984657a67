"""Progress of a run on a terminal: phase, active faults, rates, errors, time left.

Without a terminal, only plain lines are printed.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from urteil.harness.evidence.line_file import read_lines

KINDS = {b'["ok"': "ok", b'["inf': "unknown", b'["fai': "failed"}
_BEGINS = re.compile(r"^(.+?) acts(?:: |$)")
_ENDS = re.compile(r"^(.+?) healed")
_SHORT = 44


@dataclass(slots=True)
class Progress:
    """A status line that is redrawn twice a second; `say` prints the lab's log lines above it."""

    console: Console
    duration_s: float
    phase: str = "starting"
    acting: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _run_dir: Path | None = None
    _began: float = field(default_factory=time.monotonic)
    _load_began: float | None = None
    _read: dict[Path, int] = field(default_factory=dict)
    _rate: float = 0.0
    _last: tuple[float, int] = (0.0, 0)

    def print_line(self, line: str) -> None:
        """Print a line of the lab's log and update phase and faults from it."""
        if line.startswith("run "):
            self._run_dir = Path(line.removeprefix("run "))
        elif "brokers ready" in line:
            self.phase, self._load_began = "load", time.monotonic()
        elif "records acknowledged" in line:
            self.phase = "final reads"
        elif line in ("judging", "collecting the evidence"):
            self.phase = line
        elif match := _BEGINS.match(line):
            self.acting.append(match[1])
        elif (match := _ENDS.match(line)) and match[1] in self.acting:
            self.acting.remove(match[1])
        self.console.print(line, markup=False, highlight=False)

    def __rich__(self) -> Text:
        self._count()
        fields = [f"[bold]{self.phase}[/] {time.monotonic() - self._began:.0f} s"]
        if self._load_began is not None and self.phase == "load":
            remaining_s = self.duration_s - (time.monotonic() - self._load_began)
            fields.append(f"{max(0.0, remaining_s):.0f} s of load left")
            fields.append(f"{self._rate:,.0f} acknowledged/s")
        fields += [f"{count:,} {kind}" for kind, count in sorted(self.counts.items()) if count]
        names = [name if len(name) <= _SHORT else name[: _SHORT - 1] + "…" for name in self.acting]
        fields += [f"[red]{escape(name)}[/]" for name in names]
        return Text.from_markup("  ".join(fields), overflow="ellipsis")

    def _count(self) -> None:
        """Count the new lines of the clients' journals."""
        if self._run_dir is None or self.phase not in ("load", "final reads"):
            return
        for path in self._run_dir.glob("journal/*.jsonl"):
            for line in read_lines(path, self._read.get(path, 0)):
                self._read[path] = self._read.get(path, 0) + len(line)
                kind = KINDS.get(line[:5])
                if kind is not None:
                    self.counts[kind] += 1
        now, acked = time.monotonic(), self.counts["ok"]
        if now - self._last[0] >= 1:
            self._rate = (acked - self._last[1]) / (now - self._last[0]) if self._last[0] else 0.0
            self._last = (now, acked)


@contextmanager
def progress(duration_s: float, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield the function that prints a run's log lines; plain if `quiet` or without a terminal."""
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield lambda line: print_plain(line)
        return
    display = Progress(console, duration_s)
    with Live(display, console=console, refresh_per_second=2, transient=True):
        yield display.print_line


def print_plain(line: str) -> None:
    """One line on stderr."""
    import click

    click.echo(line, err=True)
