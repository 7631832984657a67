"""The form in which every guarantee is declared."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from urteil.harness.evidence.schema import SCHEMAS

Explain = Callable[[Mapping[str, Any]], str]

SLOT = 1 << 48
"""A slot is partition number * SLOT + offset."""

EPOCH = 1 << 32
"""Packed columns: leader epoch * EPOCH + batch CRC, producer epoch * EPOCH + sequence."""

DESTROYED = "a fault took it from every replica that was in sync"
LOSS = (
    "CASE WHEN x.at_ns >= x.spoilt_ns THEN NULL"
    " WHEN x.unclean_on = 1 AND x.off >= x.unclean_floor"
    " THEN 'an unclean election began below this offset'"
    f" WHEN x.off >= x.lost_floor THEN '{DESTROYED}' END"
)
"""Permission by an unclean election, from the start of its epoch on, and by disks that lost what no
other in-sync replica had: of what was known (`at_ns`) before everybody had heard of that."""

FELL = LOSS.replace("x.at_ns", "x.known_ns")
"""The same where `at_ns` is when it showed."""

DUE = """
(SELECT s.p, s.off, s.slot, s.bucket, s.value_id, s.grps FROM slots s WHERE s.visible = 1
 UNION ALL
 SELECT c.p, c.off, c.slot, c.bucket, c.value_id, c.grps FROM committed c)
"""
"""Records that every reader must be given."""

_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")
_MADE_OF = {
    "gaps": ("reads", "passes"),
    "committed": ("txns",),
    "spans": ("states",),
    "views": ("samples",),
    "answers": ("offset_answers",),
    "logs_p": ("logs",),
    "epochs": ("logs",),
    "held": ("replicas", "logs"),
    "cover": ("logs", "passes"),
    "trials": ("faults", "states"),
    "recoveries": ("faults", "states"),
    "chores": ("faults", "states", "admin_ops"),
    "leftovers": ("faults", "states", "logs", "samples"),
    "quiets": ("faults", "states"),
    "standstills": ("faults", "states", "txns"),
    "ends": ("samples", "faults"),
    "rations": ("admin_ops", "clients", "faults", "states"),
    "calms": ("polls", "passes", "commits", "clients", "assignments", "faults", "states"),
    "departures": ("assignments", "clients", "faults", "states", "admin_ops"),
    "returns": ("assignments", "clients", "faults", "states", "admin_ops"),
    "expulsions": ("polls", "assignments", "clients", "faults", "states"),
    "grps": ("clients", "assignments", "commits"),
    "members": ("clients", "assignments", "commits"),
    "commit_breaks": (
        *("commits", "commit_reads", "states", "assignments", "reads", "polls", "admin_ops"),
    ),
}
"""What derived tables are made of; beside `parts`, `slots` and `vals`, which are RECORDS."""

_WORD = re.compile(r"\w+")
_TOLD_BY = {
    **dict.fromkeys(("lost_floor", "clock_moved", "calm_ns", "blind"), ("faults",)),
    "spoilt_ns": ("admin_ops", "faults", "states"),
    **dict.fromkeys(
        (
            "unclean_asked",
            "min_isr",
            "trimmed",
            "late_begin",
            "cut_to",
            "sent_times",
            "deleted_to",
            "max_bytes",
            "past_ms",
            "future_ms",
        ),
        ("admin_ops",),
    ),
    "unclean_on": ("admin_ops", "states"),
    "flushed_ns": ("faults", "states"),
    "short_from_ns": ("admin_ops", "faults"),
}
"""Columns of `parts` and `spans` that excuse what faults and administrators did."""

RECORDS = ("sends", "reads", "replicas", "logs", "passes", "states", "clients")
"""What most guarantees rest on: slots and values are made of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """One promise and how a run shows it broken. All SQL is in Spark's dialect and portable.

    `opportunities` answers one number: what could have shown a violation. `violations` answers a
    row an anomaly with at least sub_kind, p, off, at_ns, until_ns; what else it has goes into the
    finding's record. `permitted` is an expression over that row (alias `x`): the reason for which
    the settings permit it, or NULL. `explain` makes the sentence from the row, which then also has
    topic and partition. `needs` names the tables without which nothing can be judged.
    """

    name: str
    about: str
    promise: str
    source: str
    opportunities: str
    violations: str
    explain: Explain
    permitted: str = "CAST(NULL AS STRING)"
    rank: int = 1000
    """Place among the guarantees of its subject in reports: the smallest first, then by name."""
    needs: tuple[str, ...] = ("sends",)
    subjects: tuple[str, ...] = ()
    """Derived tables, and columns of `parts` (`parts.compacted`). In a run where all of these are
    empty, and 0 in every partition, nothing is an opportunity or a violation: it is not queried."""
    sub_kinds: tuple[str, ...] = ()
    tie: str = "j.value_id"
    """What orders findings of one place and time (alias `j`), so that engines agree."""
    rests_on: tuple[str, ...] = RECORDS
    """Tables whose damage leaves a violation in doubt."""
    needs_whole_passes: bool = False
    """Whether a final pass that stopped short leaves the guarantee unknown."""

    def evidence(self) -> frozenset[str]:
        """Every table whose damage may cause a violation: declared, read, or needed by excuses."""
        read = set(_TABLE.findall(f"{self.violations} {self.opportunities}"))
        tables = {*self.rests_on, *self.needs, *(read & SCHEMAS.keys())}
        words = set(_WORD.findall(f"{self.violations} {self.permitted}"))
        tables = tables.union(*(_TOLD_BY.get(word, ()) for word in words))
        return frozenset(tables.union(*(_MADE_OF.get(name, ()) for name in read)))

    def judged(self) -> str:
        """The violations, each with its permission."""
        return f"SELECT x.*, {self.permitted} AS permitted FROM ({self.violations}) x"

    def tally(self) -> str:
        """One row: opportunities, violations, and anomalies that are permitted."""
        return (
            "SELECT CAST(o.n AS BIGINT) AS opportunities, k.n - k.permitted AS violations, "
            f"k.permitted FROM ({self.opportunities}) o CROSS JOIN "
            f"(SELECT COUNT(*) AS n, COUNT(j.permitted) AS permitted FROM ({self.judged()}) j) k"
        )

    def first(self, limit: int) -> str:
        """The first findings, violations before what is permitted."""
        return (
            f"SELECT j.* FROM ({self.judged()}) j ORDER BY "
            "CASE WHEN j.permitted IS NULL THEN 0 ELSE 1 END, "
            "COALESCE(j.p, -1), COALESCE(j.off, -1), COALESCE(j.at_ns, -1), "
            f"j.sub_kind, {self.tie} "
            f"LIMIT {limit}"
        )


def numbered(judged: str) -> str:
    """How many values (`FROM vals v ...`) there are, asked of their kinds."""
    return f"SELECT COALESCE(SUM(v.n), 0) AS n {judged.replace('FROM vals v', 'FROM kinds v')}"


def place(row: Mapping[str, Any]) -> str:
    """`topic-partition@offset` of a finding's row, as far as it is known."""
    offset = "" if row.get("off") is None else f"@{row['off']}"
    return f"{row.get('topic') or '?'}-{row.get('partition')}{offset}"


def acks(row: Mapping[str, Any]) -> str:
    """`acks=all`, as people write it."""
    return f"acks={'all' if row['acks'] == -1 else row['acks']}"
