"""With acks=all a record is acknowledged only while enough replicas are in sync.

The limit is min(min.insync.replicas, number of replicas), with the smallest number of replicas that
the partition ever had, because an administrator may have removed some. If an administrator changed
the setting, the smallest value counts that the leader may use in that version.

A change of the ISR reaches a leader with a delay, and a paused or isolated leader keeps the ISR
that it last knew. A record is therefore a violation only when the state in ZooKeeper had too few
members from a second before the invocation until after the completion, within one version (so that
epoch and ISR were unchanged), and before any fault that could have hidden it from the leader. The
leader's maximal ISR may be larger while an expansion is pending, but the committed ISR decides
whether an append is rejected."""

from __future__ import annotations

import json
from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_PROPAGATED_NS = 1_000_000_000
_SLACK_NS = 200_000_000

_JUDGED = f"""
FROM records JOIN state_spans spans ON spans.p = records.sent_p
  AND records.invoke_ns >= spans.begin_ns + {_PROPAGATED_NS}
  AND COALESCE(records.complete_ns, records.invoke_ns) < spans.end_ns - {_SLACK_NS}
  AND COALESCE(records.complete_ns, records.invoke_ns) < spans.uninformed_ns
WHERE records.sent = 1 AND records.acks = -1 AND spans.isr_size < spans.min_isr
  AND spans.leader >= 0
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """The leader acknowledges no record with acks=all while a version of the state that has been
    current for a second, and stays current, has too few replicas in its ISR.

    Left out: changes of the setting, and acknowledgements after a fault hit the leader's node.
    """
    for partition in history.partitions:
        for state, end_ns in partition.reigns:
            least = int(partition.settings.get("min.insync.replicas", "2"))
            if state.leader < 0 or len(json.loads(state.isr or "[]")) >= least:
                continue
            fault_begins = [
                fault.begin_ns
                for fault in history.faults
                if f"b{state.leader}" in json.loads(fault.targets)
                and fault.begin_ns < end_ns
                and fault.healed_ns > state.at_ns
            ]
            for send in partition.sends:
                since_ns, until_ns = (
                    state.at_ns + _PROPAGATED_NS,
                    min([end_ns - _SLACK_NS, *fault_begins]),
                )
                is_within = since_ns <= send.invoke_ns and (send.complete_ns or 0) < until_ns
                by_leader = send.node in (None, state.leader)
                if send.outcome == "ok" and send.acks == -1 and is_within and by_leader:
                    offset = acknowledged_offset(send)
                    yield partition.violation("acknowledged", offset, send.value_id)


GUARANTEE = Guarantee(
    name="ack_below_min_isr",
    rank=40,
    about="acks=all was acknowledged while the ISR was below min.insync.replicas",
    promise="When a producer sets acks to all, min.insync.replicas specifies the minimum number "
    "of replicas that must acknowledge a write for the write to be considered successful.",
    source="Kafka documentation, 3.2 Topic Configs: min.insync.replicas; KAFKA-15583",
    sub_kinds={
        "acknowledged": "the record was acknowledged",
    },
    details=(
        "acks=all acknowledged although ZooKeeper's ISR was below min(min.insync.replicas, "
        "replicas) in one version from 1 s before the invocation to after the completion. Of "
        "replicas the fewest count that the partition ever had.",
        "Of several values of `min.insync.replicas` the lowest counts that a broker may use in "
        "that version. An old value ends 5 s after the next change, unless a fault may have "
        "hidden that from a broker.",
    ),
    not_counted=(
        "Acknowledgements after links were cut, or the leader itself became a fault's target, "
        "during that version: it correctly uses the ISR that it last knew.",
    ),
    unused_evidence=(
        "Acknowledgements while a fault may have hidden the last version of the ISR from "
        "the leader.",
    ),
    occasion=Occasion.MIN_ISR,
    opportunities=f"SELECT COUNT(*) AS n {_JUDGED}",
    violations=f"""
SELECT 'acknowledged' AS sub_kind, records.sent_p AS p, records.ack_off AS off,
  records.invoke_ns AS at_ns, records.complete_ns AS until_ns, records.value_id, records.client,
  spans.isr, spans.min_isr, spans.leader, spans.leader_epoch, spans.version
{_JUDGED} AND records.outcome = 'ok' AND COALESCE(records.node, spans.leader) = spans.leader""",
    explain=lambda row: (
        f"{row['value_id']} was acknowledged with acks=all at {place(row)} while the ISR was "
        f"[{row['isr'].strip(',')}], fewer than {row['min_isr']}, from before it was sent."
    ),
    compares_times=True,
    needs=("sends", "states"),
    reads=("records", "state_spans", "state_spans.min_isr"),
    rests_on=("sends", "states", "faults"),
    reference=_reference,
)
