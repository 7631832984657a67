"""Keeps the run folders of a campaign within a disk budget. The most valuable ones stay longest."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from urteil.harness.hunt.job import Row

ORDER = {"PASS": 0, "UNKNOWN": 1, "FAIL": 2}


def prune_to(rows: Sequence[Row], budget_bytes: float, known_runs: frozenset[str]) -> list[Path]:
    """Remove run folders until the others fit into the budget. Returns the removed ones.

    Passed runs are removed first, then UNKNOWN ones, then failures. Among failures, paths in
    `known_runs` are removed first, since an earlier run showed the same, and older ones before
    newer ones.
    """
    existing = [(row, Path(row.run)) for row in rows if row.run and Path(row.run).is_dir()]
    sizes = {path: size_of(path) for _, path in existing}
    total, removed = sum(sizes.values()), []
    for _, path in sorted(existing, key=lambda pair: _worth(pair[0], known_runs)):
        if total <= budget_bytes:
            break
        shutil.rmtree(path, ignore_errors=True)
        total -= sizes[path]
        removed.append(path)
    return removed


def _worth(row: Row, known_runs: frozenset[str]) -> tuple[int, bool, str]:
    return ORDER.get(row.verdict, 1), row.run not in known_runs, row.at


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
