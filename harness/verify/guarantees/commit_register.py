"""The committed position of a group in a partition is one linearizable register.

OffsetCommit writes it, OffsetFetch reads it: an answer must be the value of a commit that was under
way, or of the last one before it. The search is Python, on one register at a time: rows of
`commit_breaks` (harness/verify/register.py).
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.commit_went_back import (
    ANSWERS,
    DEPOSED,
    answered,
    breaks,
)

GUARANTEE = Guarantee(
    name="commit_register",
    about="an answer about a committed position that no order of the commits explains",
    promise="Offsets committed by a group are stored by its one coordinator, which serves the "
    "last of them.",
    source="Kafka documentation, Distribution: Consumer Offset Tracking; KIP-211",
    opportunities=ANSWERS,
    violations=breaks("register"),
    permitted=DEPOSED,
    explain=lambda row: (
        f"{answered(row)}; the last commit acknowledged before was {row['acknowledged']}, and no "
        "order of the commits explains it."
    ),
    needs=("commits", "commit_reads"),
    sub_kinds=("register",),
    tie="j.grp, j.client",
)
