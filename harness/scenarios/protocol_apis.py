"""The APIs that change state: their senders and frequencies.

The scenarios of `protocol` and `protocol_matrix` act on each of them, `chaos-protocol` draws from
them by weight, and the page of `docs.protocol_matrix` has a row for each.
"""

from __future__ import annotations

from dataclasses import dataclass

FROM_CLIENTS, FROM_CONTROLLER, TO_CONTROLLER = "client->all", "controller->all", "all->controller"
BETWEEN_BROKERS = "all->all"

ACTS = {
    "lose_request": "request lost",
    "lose_answer": "answer lost",
    "duplicate_request": "delivered twice",
    "delay_answer": "answer late",
    "kill request": "killed at the request",
    "kill answer": "killed before the answer",
}
"""The acts of the matrix with the heads of their columns. `kill` is a crash of the sender or the
receiver while the frame waits in the proxy."""
KILLS = ("kill request", "kill answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """An API whose requests change state. `target` selects its links. `weight` is that of its
    faults in random schedules, 0 where the usual clients send none. `no_kills` is the reason why no
    scenario kills a node while one of its requests is under way; empty where one does."""

    api: str
    target: str = FROM_CLIENTS
    weight: float = 0.0
    no_kills: str = ""


STATE_CHANGES = {
    scenario.api: scenario
    for scenario in (
        StateChange(api="Produce", weight=3),
        StateChange(api="InitProducerId", weight=0.5),
        StateChange(api="AddPartitionsToTxn", weight=1.5),
        StateChange(api="AddOffsetsToTxn", weight=1),
        StateChange(api="TxnOffsetCommit", weight=1),
        StateChange(api="EndTxn", weight=2),
        StateChange(api="WriteTxnMarkers", target=BETWEEN_BROKERS, weight=2),
        StateChange(api="JoinGroup", weight=0.5),
        StateChange(api="SyncGroup", weight=0.5),
        StateChange(api="Heartbeat", weight=0.5),
        StateChange(api="LeaveGroup"),
        StateChange(api="OffsetCommit"),
        StateChange(api="OffsetDelete"),
        StateChange(api="DeleteGroups"),
        StateChange(api="CreateTopics", weight=0.5),
        StateChange(api="DeleteTopics", weight=0.5),
        StateChange(api="CreatePartitions"),
        StateChange(api="AlterConfigs"),
        StateChange(api="IncrementalAlterConfigs"),
        StateChange(api="AlterPartitionReassignments"),
        StateChange(api="ElectLeaders"),
        StateChange(api="DeleteRecords"),
        StateChange(api="AlterClientQuotas"),
        StateChange(api="CreateAcls"),
        StateChange(api="DeleteAcls"),
        StateChange(api="AlterUserScramCredentials"),
        StateChange(api="Fetch", target="follower->leader", weight=2),
        StateChange(api="LeaderAndIsr", target=FROM_CONTROLLER, weight=0.7),
        StateChange(api="UpdateMetadata", target=FROM_CONTROLLER, weight=0.7),
        StateChange(api="StopReplica", target=FROM_CONTROLLER, weight=0.5),
        StateChange(api="AlterPartition", target=TO_CONTROLLER),
        StateChange(
            api="ControlledShutdown",
            target=TO_CONTROLLER,
            no_kills="the request belongs to the fault `shutdown`, which begins when its broker "
            "has ended. Faults begin one at a time, so a kill would begin after the shutdown, and "
            "its request would wait for the kill",
        ),
    )
}
"""Name to API. UpdateFeatures is left out: with ZooKeeper no feature can be updated."""
