"""The committed position of a group in a partition is one linearizable register.

OffsetCommit writes it, OffsetDelete and DeleteGroups empty it (forgotten.py), OffsetFetch reads it:
an answer must be the value of a commit that was under way, or of the last one before it. The search
is Python, on one register at a time: rows of `commit_breaks` (harness/verify/register.py).

`note`: a position was told without the text or the leader epoch that were committed with it (of
workload `commits`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.commit_went_back import (
    ANSWERS,
    DEPOSED,
    answered,
    breaks,
)


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "note":
        return f"{answered(row)}, without the text or the leader epoch committed with it."
    last = "its deletion" if row["acknowledged"] == -1 else row["acknowledged"]
    return (
        f"{answered(row)}; the last commit acknowledged before was {last}, and no order of the "
        "commits explains it."
    )


GUARANTEE = Guarantee(
    name="commit_register",
    about="an answer about a committed position that no order of the commits explains",
    promise="Offsets committed by a group are stored by its one coordinator, which serves the "
    "last of them; what is deleted of them is served no more.",
    source="Kafka documentation, Distribution: Consumer Offset Tracking; KIP-211; KIP-229; KIP-496",
    opportunities=ANSWERS,
    violations=f"""{breaks("register")}
UNION ALL
SELECT 'note', q.p, r.offset, r.invoke_ns, r.complete_ns, r.`group`, r.client, r.session,
  r.offset, NULL, 0
FROM commit_reads r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
WHERE r.outcome = 'ok' AND r.intact = FALSE""",
    permitted=DEPOSED,
    explain=_explain,
    needs=("commits", "commit_reads"),
    sub_kinds=("register", "note"),
    tie="j.grp, j.client",
)
