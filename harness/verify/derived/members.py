"""The members of each group: by their own settings, assignments and commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from urteil.harness.verify import evidence
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.part_cache import once_a_version

GROUPS = 62
"""The number of groups with a bit of their own in a BIGINT. Further groups share bits, and checks
that must know a reader's group treat those that share a bit as one."""

_COLUMNS = ["client", "session", "group"]


def member_rows(run_dir: Path) -> tuple[list[Row], list[Row]]:
    """Rows of the derived tables `grps` (a group and its bit) and `members` (a session and the bits
    of its groups)."""
    memberships = set(_reported_generations(run_dir))
    names = sorted({group for _, _, group in memberships})
    bits = {name: 1 << (n % GROUPS) for n, name in enumerate(names)}
    rows: dict[tuple[str, int], int] = {}
    for client, session, group in memberships:
        rows[client, session] = rows.get((client, session), 0) | bits[group]
    return (
        [{"grp": name, "bit": bit} for name, bit in bits.items()],
        [{"client": c, "session": s, "bits": b} for (c, s), b in sorted(rows.items())],
    )


def _reported_generations(run_dir: Path) -> Iterator[tuple[str, int, str]]:
    for table in ("clients", "assignments", "commits"):
        for part in evidence.files(run_dir, table):
            yield from _memberships_in(part)


@once_a_version
def _memberships_in(part: Path) -> frozenset[tuple[str, int, str]]:
    memberships: set[tuple[str, int, str]] = set()
    for batch in evidence.batches(part, _COLUMNS):
        once = pa.Table.from_batches([batch]).group_by(_COLUMNS).aggregate([])
        memberships |= {
            (str(row["client"]), int(row["session"]), str(row["group"]))
            for row in once.to_pylist()
            if None not in row.values()
        }
    return frozenset(memberships)
