"""Keeps the folders of a campaign's runs within a budget of disk, what matters longest."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from urteil.harness.hunt.job import Row

ORDER = {"PASS": 0, "UNKNOWN": 1, "FAIL": 2}


def prune_to(rows: Sequence[Row], budget_bytes: float, known: frozenset[str]) -> list[Path]:
    """Remove run folders until the rest fits, and say which.

    First goes what passed, then what is UNKNOWN, then failures: of them those whose path is
    `known`, because an earlier run showed the same; the older before the newer.
    """
    there = [(row, Path(row.run)) for row in rows if row.run and Path(row.run).is_dir()]
    sizes = {path: size_of(path) for _, path in there}
    total, removed = sum(sizes.values()), []
    for _, path in sorted(there, key=lambda one: _worth(one[0], known)):
        if total <= budget_bytes:
            break
        shutil.rmtree(path, ignore_errors=True)
        total -= sizes[path]
        removed.append(path)
    return removed


def _worth(row: Row, known: frozenset[str]) -> tuple[int, bool, str]:
    return ORDER.get(row.verdict, 1), row.run not in known, row.at


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
