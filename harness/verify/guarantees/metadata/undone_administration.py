"""A change whose acknowledgement an administrator received stays.

If a metadata plane loses committed changes, say when controllers crash, a topic vanishes or a
deleted topic returns. Judged are the lab's own acts: the last one on a topic, a setting, a
client's quotas or the features, if it was acknowledged, against the last states of the metadata
plane (`derived/acknowledged_changes.py`). Whether moves of replicas and deletions end in time, and
stay, is judged by `unfinished_administration`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"An administrator requested {row['change']}, which was acknowledged, but at the end of "
        f"the run {row['actual']}."
    )


GUARANTEE = Guarantee(
    name="undone_administration",
    rank=61,
    about="an acknowledged change of a topic, setting, quota, voter or feature is undone",
    promise="An acknowledged creation, deletion or growth of a topic, and an acknowledged change "
    "of its settings, of a quota, of a quorum's voters or of a feature, stays.",
    source="KIP-500, KIP-584, KIP-631, KIP-853: an acknowledged change is a committed record of "
    "the metadata log",
    sub_kinds={
        "lost topic": "a topic whose creation was acknowledged does not exist",
        "returned topic": "a topic whose deletion was acknowledged exists",
        "lost partitions": "a topic has fewer partitions than was acknowledged",
        "lost setting": "a setting or a quota is not what was acknowledged",
        "lost voter": "a controller whose addition was acknowledged is no voter of the quorum",
        "returned voter": "a controller whose removal was acknowledged is a voter of the quorum",
        "lowered feature": "a feature has a lower level than was acknowledged",
    },
    details=(
        "Judged is the lab's last act on a topic, a setting, the quotas of a client id, a voter or "
        "the features, if it was acknowledged, against the last states of ZooKeeper or of KRaft's "
        "metadata log.",
    ),
    not_counted=("ACLs, credentials and settings of brokers.",),
    occasion=Occasion.ADMINISTRATION,
    opportunities="SELECT COUNT(*) AS n FROM acknowledged_changes changes",
    violations="""
SELECT kind AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off, at_ns, until_ns,
  change, actual
FROM acknowledged_changes WHERE undone = 1""",
    explain=_explain,
    tie="finding.change",
    needs=("states",),
    reads=("acknowledged_changes",),
    subjects=("acknowledged_changes",),
    rests_on=("states", "admin_ops"),
    no_reference=DERIVED,
)
