"""A leader of KRaft's quorum resigns once a majority of the voters follows another one.

Judged is the longest time from its successor's election to the next version of its file
`quorum-state`, in which no fault acted on the controller itself (`derived/deposed_controllers.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    lasted_s = (row["until_ns"] - row["at_ns"]) / 1e9
    return (
        f"Controller {row['node']} went on as the quorum's leader of epoch {row['epoch']} for "
        f"{lasted_s:.1f} s after controller {row['next_leader']} had been elected in epoch "
        f"{row['next_epoch']}; {row['limit_s']:g} s are enough to resign."
    )


GUARANTEE = Guarantee(
    name="deposed_controller",
    rank=67,
    about="a leader of a KRaft quorum does not resign although a majority follows another one",
    promise="A leader of the quorum that a majority of the voters does not fetch from resigns "
    "within one and a half times controller.quorum.fetch.timeout.ms.",
    source="KIP-595: Leader Progress Timeout; KAFKA-15489",
    sub_kinds={
        "not resigned": "a leader kept its epoch for that time and 10 s more after another one was "
        "elected",
    },
    details=(
        "The lab looks at the controllers' files every 20 ms, and knows the moments from them.",
    ),
    not_counted=("Times in which a fault acts on the controller itself, and not only on links.",),
    occasion=Occasion.DEPOSED_CONTROLLER,
    opportunities="SELECT COUNT(*) AS n FROM deposed_controllers",
    violations="""
SELECT 'not resigned' AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off,
  from_ns AS at_ns, to_ns AS until_ns, node, epoch, next_epoch, next_leader, limit_s
FROM deposed_controllers WHERE late = 1""",
    explain=_explain,
    tie="finding.epoch, finding.node",
    compares_times=True,
    host_load_excuses=True,
    needs=("votes",),
    reads=("deposed_controllers",),
    rests_on=("votes", "faults"),
    no_reference=DERIVED,
)
