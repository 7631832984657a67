"""UpdateMetadata with a newer leader epoch, before LeaderAndIsr assigns a role."""

from __future__ import annotations

from pathlib import Path

from tests.broker.net.raw import run
from tests.broker.replication.hosting import Hosting
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import UpdateMetadataRequest

State = UpdateMetadataRequest.UpdateMetadataPartitionState
KEY = ("t", 0)


def partition_states(epoch: int, leader: int, replicas: tuple[int, ...]) -> list[tuple[str, State]]:
    state = State(partition_index=0, leader=leader, leader_epoch=epoch, replicas=replicas)
    return [("t", state)]


async def append(hosting: Hosting) -> ErrorCode:
    data = memoryview(build_batch([(None, b"x", (), 0)]))
    return (await hosting.replicas.append(0, 1, {KEY: data}))[KEY].error


def test_restarted_leader_does_not_lead_beside_its_successor(tmp_path: Path) -> None:
    """A restarted broker gets UpdateMetadata for all partitions before its roles."""

    async def scenario() -> None:
        hosting = Hosting([tmp_path])
        led: list[bool] = []
        hosting.replicas.on_leadership(lambda _topic, _partition, leads, _epoch: led.append(leads))
        hosting.lead(0, epoch=3, replicas=(1, 2))
        hosting.control.apply_metadata(partition_states(3, 2, (1, 2)))
        hosting.control.apply_metadata(partition_states(2, 2, (1, 2)))
        hosting.control.apply_metadata(partition_states(4, 1, (1, 2)))
        assert await append(hosting) is ErrorCode.NONE
        hosting.control.apply_metadata(partition_states(4, 2, (1, 2)))
        assert await append(hosting) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        hosting.lead(0, epoch=5, replicas=(1, 2))
        assert await append(hosting) is ErrorCode.NONE
        assert led == [True, False, True]
        hosting.close()

    run(scenario())


def test_restarted_broker_drops_partitions_that_moved_away(tmp_path: Path) -> None:
    """No LeaderAndIsr names it, and StopReplica did not reach it."""

    async def scenario() -> None:
        hosting = Hosting([tmp_path])
        hosting.lead(0, epoch=3, replicas=(1, 2))
        hosting.announce_topic("t", epoch=4)
        hosting.control.apply_metadata(partition_states(4, 2, (2, 3)))
        assert hosting.replicas.partition(*KEY) is None
        assert await append(hosting) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert hosting.logs.get(*KEY) is not None, "nobody said that it is to be deleted"
        hosting.lead(0, epoch=5, replicas=(1, 2), is_new=False)
        assert await append(hosting) is ErrorCode.NONE
        hosting.close()

    run(scenario())
