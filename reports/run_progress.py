"""Progress of a run that is under way: records/s by outcome, read from its journals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from urteil.harness.evidence.line_file import read_lines

NS = 1_000_000_000
KINDS = ("ok", "fail", "info")
_LINE = msgspec.json.Decoder(list[Any])


def progress(run_dir: Path) -> dict[str, list[float]]:
    """Columns `at` (seconds since the first send) and records/s by outcome.

    Incomplete lines and the last second are left out.
    """
    counts = _count_outcomes(run_dir)
    last = max((second for _, second in counts), default=-1)
    columns: dict[str, list[float]] = {"at": [float(n) for n in range(last)]}
    for kind in KINDS:
        columns[kind] = [float(counts[kind, n]) for n in range(last)]
    return columns


def _count_outcomes(run_dir: Path) -> Counter[tuple[str, int]]:
    """Completions by outcome and second."""
    sent: list[tuple[str, int]] = []
    begin_ns = 0
    for path in sorted((run_dir / "journal").glob("*.jsonl")):
        for line in read_lines(path):
            try:
                entry = _LINE.decode(line)
                kind, at_ns = entry[0], int(entry[2])
            except (msgspec.MsgspecError, IndexError, TypeError, ValueError):
                continue
            if kind == "send":
                begin_ns = min(begin_ns or at_ns, at_ns)
            elif kind in KINDS:
                sent.append((kind, at_ns))
    return Counter((kind, (at_ns - begin_ns) // NS) for kind, at_ns in sent)
