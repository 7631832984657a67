"""Excerpts of the processes' logs around each fault and finding.

Logs carry wall clock times, evidence CLOCK_MONOTONIC. The table `states` has both for each change
in ZooKeeper; their median difference converts one into the other.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from urteil.harness.verify.result import Result, Status
from urteil.reports.evidence_views import NS, EvidenceViews

BEFORE_NS, AFTER_NS = 2 * NS, 6 * NS
LINES = 60
"""An excerpt with more lines of one log keeps its first and last ones."""
CUTS = 40
STACK_LINES = 400
FOLDER = "stacks"
"""Written by `harness/stack_dumps.py`."""
LONGEST_LINE = 400
_TIME = re.compile(r"\[?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)[.,](\d{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Lines of one process; `left_out` lines are missing in the middle."""

    name: str
    lines: list[str]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogExcerpt:
    """Lines of all brokers and ZooKeepers from `begin_ns` to `end_ns`, and why they are shown."""

    why: str
    begin_ns: int
    end_ns: int
    logs: list[Log]


def excerpts(run_dir: Path, run: EvidenceViews, result: Result) -> list[LogExcerpt]:
    """Excerpts around faults and findings, oldest first; none if the clocks cannot be related."""
    windows = _windows(result)[:CUTS]
    offset_ns = _wall_offset(run) if windows else None
    if offset_ns is None:
        return []
    texts = [(_stamp(b + offset_ns), _stamp(e + offset_ns)) for _, b, e in windows]
    logs_by_window: list[list[Log]] = [[] for _ in windows]
    for path in sorted(run_dir.glob("logs/*.log")):
        if re.match(r"(b|zk)\d+$", path.stem):
            for number, lines in enumerate(_lines_in_windows(path, texts)):
                if lines:
                    logs_by_window[number].append(_log(path.stem, lines))
    return [
        LogExcerpt(why=why, begin_ns=begin, end_ns=end, logs=logs)
        for (why, begin, end), logs in zip(windows, logs_by_window, strict=True)
        if logs
    ]


def stacks(run_dir: Path) -> list[Log]:
    """Stack dumps of a run that hung, one for each process."""
    stack_files = sorted((run_dir / FOLDER).glob("*.txt"))
    return [_log(path.stem, list(_lines(path)), STACK_LINES) for path in stack_files]


def _wall_offset(run: EvidenceViews) -> int | None:
    rows = run.rows("SELECT median(wall_ms * 1000000 - at_ns) FROM states WHERE wall_ms > 0")
    return None if rows[0][0] is None else int(rows[0][0])


def _windows(result: Result) -> list[tuple[str, int, int]]:
    """Windows around each fault's begin and healing, and each violation's first findings."""
    moments = []
    for fault in result.faults:
        name = f"{fault.fault} on {', '.join(fault.targets[:3])}"
        moments.append((f"{name} begins", fault.begin_ns))
        if fault.healed_ns is not None:
            moments.append((f"{name} is healed", fault.healed_ns))
    for guarantee in result.guarantees:
        if guarantee.status is Status.VIOLATED:
            times = [finding.at_ns for finding in guarantee.findings if finding.at_ns is not None]
            moments += [(guarantee.name, at) for at in sorted(times)[:3]]
    windows: list[tuple[str, int, int]] = []
    for why, at in sorted(moments, key=lambda moment: moment[1]):
        begin, end = at - BEFORE_NS, at + AFTER_NS
        if windows and begin <= windows[-1][2]:
            reasons, first, _ = windows.pop()
            known = why in reasons.split("; ")
            windows.append((reasons if known else f"{reasons}; {why}", first, end))
        else:
            windows.append((why, begin, end))
    return windows


def _stamp(wall_ns: int) -> str:
    second, rest = divmod(wall_ns, NS)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second)) + f".{rest // 1_000_000:03}"


def _lines_in_windows(path: Path, windows: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The lines of each window; a line without a time belongs to the line before it."""
    lines: list[list[str]] = [[] for _ in windows]
    now = ""
    for line in _lines(path):
        stamped = _TIME.match(line)
        now = " ".join(stamped.groups()[:2]) + f".{stamped[3]}" if stamped else now
        for number, (begin, end) in enumerate(windows):
            if begin <= now <= end:
                lines[number].append(line)
    return lines


def _lines(path: Path) -> Iterator[str]:
    with path.open(errors="replace") as lines:
        for line in lines:
            yield line.rstrip("\n")


def _log(name: str, lines: list[str], most: int = LINES) -> Log:
    lines, half = [line[:LONGEST_LINE] for line in lines], most // 2
    if len(lines) <= most:
        return Log(name=name, lines=lines, left_out=0)
    left_out = len(lines) - 2 * half
    gap = f"... {left_out:,} more lines ..."
    return Log(name=name, lines=[*lines[:half], gap, *lines[-half:]], left_out=left_out)
