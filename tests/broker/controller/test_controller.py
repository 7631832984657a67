"""Controllers against a real ZooKeeper and peers on real sockets."""

from __future__ import annotations

import asyncio

from tests.broker.controller.controller_nodes import Node, Nodes, nodes, run
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import wait_until
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    UpdateMetadataRequest,
)
from urteil.broker.zookeeper import znodes


def test_new_topic_gets_leaders_and_is_announced(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, 3) as cluster:
            await cluster.make_topic("t", {0: (2, 3), 1: (3, 1)})
            first = await cluster.until_state("t", leader=2, isr=(2, 3))
            assert (first.leader_epoch, first.partition_epoch) == (0, 0)
            await wait_until(
                lambda: all(len(node.metadata("t")) == 2 for node in cluster.values()), "metadata"
            )
            await wait_until(lambda: len(cluster[3].states("t")) == 2, "both replicas of broker 3")
            assert list(cluster[2].states("t")) == [0]
            role = cluster[2].states("t")[0]
            assert (role.leader, role.isr, role.replicas, role.is_new) == (2, (2, 3), (2, 3), True)
            request = next(
                request for request in cluster[2].received if hasattr(request, "live_leaders")
            )
            assert request.broker_epoch == cluster[2].registration.epoch
            # the topic had no id: the controller assigned and announced one
            data, _ = await cluster[1].zk.get(znodes.topic_path("t"))
            assert request.topic_states[0].topic_id == znodes.decode_topic(data).topic_id

    run(scenario)


def test_a_dead_leader_is_replaced_and_comes_back_as_follower(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, 3) as cluster:
            await cluster.make_topic("t", {0: (3, 2, 1)})
            await cluster.until_state("t", leader=3, isr=(3, 2, 1))
            await cluster.remove(3)
            state = await cluster.until_state("t", leader=2, isr=(2, 1))
            assert state.leader_epoch == 1
            await cluster.all_alive(1, 2)
            await wait_until(lambda: cluster[1].states("t")[0].leader == 2, "the follower hears")
            assert cluster[1].metadata("t")[0].offline_replicas == (3,)
            back = await cluster.add(3)
            await wait_until(lambda: back.states("t"), "the broker that came back hears")
            assert back.states("t")[0].leader == 2
            assert back.metadata("t")[0].leader == 2
            assert await cluster.state("t") == state

    run(scenario)


def test_joining_broker_gets_live_brokers_before_its_roles(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """Apache Kafka follows no leader that no UpdateMetadata announced (`makeFollowers`)."""

    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            await cluster.make_topic("t", {0: (1, 3, 2), 1: (3, 2, 1)})
            await cluster.until_state("t", leader=1, isr=(1, 2))
            come = await cluster.add(3)
            await wait_until(lambda: len(come.states("t")) == 2, "roles of both partitions")
            first = come.received[0]
            assert isinstance(first, UpdateMetadataRequest)
            assert [live_broker.id for live_broker in first.live_brokers] == [1, 2, 3]
            assert [topic_state.topic_name for topic_state in first.topic_states] == ["t"]

    run(scenario)


def test_restart_within_one_watch_is_noticed_by_czxid(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            await cluster.make_topic("t", {0: (2, 1)})
            await cluster.until_state("t", leader=2, isr=(2, 1))
            old = cluster[2].registration.epoch
            # the same id and an address in common: replaces the node in one multi
            other = await cluster.add(2, earlier_port=cluster[2].port)
            assert other.registration.epoch > old
            await cluster.until_state("t", leader=1, isr=(1,))
            await wait_until(lambda: other.states("t"), "the new incarnation hears")
            assert other.states("t")[0].leader == 1
            assert all(
                request.broker_epoch == other.registration.epoch for request in other.received
            )

    run(scenario)


def test_failover_when_the_controllers_session_expires(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, 3) as cluster:
            old = await cluster.active()
            others = tuple(broker for broker in (1, 2, 3) if broker != old.id)
            await cluster.make_topic("t", {0: (old.id, *others)})
            await cluster.until_state("t", leader=old.id, isr=(old.id, *others))
            epoch, broker_epoch = old.controller.epoch, old.registration.epoch
            await asyncio.to_thread(old.expire)
            new = await cluster.active(above_epoch=epoch)
            assert new.controller.epoch == epoch + 1
            await wait_until(lambda: old.registration.epoch > broker_epoch, "registration again")
            if new.id == old.id:
                return
            assert not old.controller.is_active
            # it may have come back before the new controller looked, but never unseen
            await wait_until(
                lambda: old.received and old.received[-1].broker_epoch == old.registration.epoch,
                "requests with the new broker epoch",
            )
            assert old.received[-1].controller_epoch == epoch + 1

    run(scenario)


def test_deleted_controller_znode_starts_an_election(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            old = await cluster.active()
            for _ in range(3):
                epoch = (await cluster.active()).controller.epoch
                await old.zk.delete(znodes.CONTROLLER)
                new = await cluster.active(above_epoch=epoch)
                assert new.controller.epoch == epoch + 1
                await wait_until(lambda: _actives(cluster) == 1, "one controller alone")
            await cluster.make_topic("t", {0: (1, 2)})
            await cluster.until_state("t", leader=1, isr=(1, 2))

    run(scenario)


def _actives(cluster: Nodes) -> int:
    return sum(node.controller.is_active for node in cluster.values())


def test_a_fenced_controller_writes_nothing_and_resigns(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """Its epoch is no longer the newest, though its own `/controller` still stands."""

    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            await cluster.make_topic("t", {0: (1, 2)})
            state = await cluster.until_state("t", leader=1, isr=(1, 2))
            old = await cluster.active()
            epoch = old.controller.epoch
            await old.zk.set(znodes.CONTROLLER_EPOCH, str(epoch + 5).encode())
            answer = await old.controller.alter_partition(
                proposal(cluster[1], old, (1,), state.partition_epoch), 3
            )
            assert answer.error_code == ErrorCode.NOT_CONTROLLER
            assert await cluster.state("t") == state
            await cluster.active(above_epoch=epoch)

    run(scenario)


def proposal(
    leader: Node,
    controller: Node,
    isr: tuple[int, ...],
    partition_epoch: int,
    *,
    leader_epoch: int = 0,
    topic: str = "t",
) -> AlterPartitionRequest:
    term = controller.controller.term
    assert term is not None
    topic_id = term.context.topics[topic].topic_id
    assert topic_id is not None
    return AlterPartitionRequest(
        broker_id=leader.id,
        broker_epoch=leader.registration.epoch,
        topics=[
            AlterPartitionRequest.TopicData(
                topic_id=topic_id,
                partitions=[
                    AlterPartitionRequest.PartitionData(
                        partition_index=0,
                        leader_epoch=leader_epoch,
                        new_isr_with_epochs=[
                            AlterPartitionRequest.BrokerState(broker_id=broker) for broker in isr
                        ],
                        partition_epoch=partition_epoch,
                    )
                ],
            )
        ],
    )


def test_isr_changes_are_written_and_answered(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            await cluster.make_topic("t", {0: (1, 2)})
            await cluster.until_state("t", leader=1, isr=(1, 2))
            active = await cluster.active()
            await wait_until(lambda: cluster[1].states("t"), "the leader")
            for epoch, isr in ((0, (1,)), (1, (1, 2))):
                answer = await active.controller.alter_partition(
                    proposal(cluster[1], active, isr, epoch), 3
                )
                (partition,) = answer.topics[0].partitions
                assert (partition.error_code, partition.partition_epoch) == (0, epoch + 1)
                state = await cluster.state("t")
                assert state is not None
                assert (state.isr, state.partition_epoch, state.leader_epoch) == (isr, epoch + 1, 0)
            await wait_until(lambda: cluster[2].metadata("t")[0].zk_version == 2, "everybody hears")
            # asked again, as after a lost answer: the same answer, no further write
            again = await active.controller.alter_partition(
                proposal(cluster[1], active, (1, 2), 1), 3
            )
            assert again.topics[0].partitions[0].partition_epoch == 2
            stale = await active.controller.alter_partition(
                proposal(cluster[1], active, (1,), 1), 3
            )
            error = stale.topics[0].partitions[0].error_code
            assert error == ErrorCode.INVALID_UPDATE_VERSION

    run(scenario)


def test_partition_without_isr_needs_unclean_election_for_a_leader(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, 3) as cluster:
            await cluster.make_topic("t", {0: (3, 2)})
            await cluster.until_state("t", leader=3, isr=(3, 2))
            active = await cluster.active()
            await active.controller.alter_partition(proposal(cluster[3], active, (3,), 0), 3)
            await cluster.remove(3)
            gone = await cluster.until_state("t", leader=-1, isr=(3,))
            assert gone.leader_epoch == 1
            config = znodes.encode_config({"unclean.leader.election.enable": "true"})
            await cluster[1].zk.create(znodes.topic_config_path("t"), config)
            await cluster[1].zk.create(
                f"{znodes.CONFIG_CHANGES}/config_change_",
                znodes.encode_config_change("topics/t"),
                sequence=True,
            )
            unclean = await cluster.until_state("t", leader=2, isr=(2,))
            assert (unclean.leader_epoch, unclean.recovery_state) == (2, 1)
            await wait_until(lambda: cluster[2].states("t")[0].leader == 2, "the new leader hears")
            assert cluster[2].states("t")[0].leader_recovery_state == 1

    run(scenario)


def test_returning_isr_member_leads_again(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, 3) as cluster:
            await cluster.make_topic("t", {0: (2, 3)})
            await cluster.until_state("t", leader=2, isr=(2, 3))
            await cluster.remove(2)
            await cluster.until_state("t", leader=3, isr=(3,))
            await cluster.remove(3)
            await cluster.until_state("t", leader=-1, isr=(3,))
            await cluster.add(2)
            await cluster.all_alive(1, 2)
            assert (await cluster.until_state("t", leader=-1, isr=(3,))).leader_epoch == 2
            await cluster.add(3)
            assert (await cluster.until_state("t", leader=3, isr=(3,))).leader_epoch == 3

    run(scenario)


def test_controlled_shutdown_moves_all_leaders(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, 3) as cluster:
            await cluster.make_topic("t", {0: (2, 1, 3), 1: (1, 2, 3)})
            await cluster.make_topic("single", {0: (2,)})
            await cluster.until_state("t", leader=1, isr=(1, 2, 3), partition=1)
            await cluster.until_state("single", leader=2, isr=(2,))
            active = await cluster.active()
            epoch = cluster[2].registration.epoch
            stale = await active.controller.controlled_shutdown(
                ControlledShutdownRequest(broker_id=2, broker_epoch=epoch - 1)
            )
            assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
            answer = await active.controller.controlled_shutdown(
                ControlledShutdownRequest(broker_id=2, broker_epoch=epoch)
            )
            assert (answer.error_code, list(answer.remaining_partitions)) == (0, [])
            await cluster.until_state("t", leader=1, isr=(1, 3))
            await cluster.until_state("t", leader=1, isr=(1, 3), partition=1)
            await wait_until(
                lambda: set(cluster[2].stopped()) == {("t", 0, False), ("t", 1, False)},
                "StopReplica without deletion",
            )
            epochs = {index: state.leader_epoch for index, state in cluster[2].states("t").items()}
            assert epochs == {0: 0, 1: 0}, "it must not fetch in the epochs that go on without it"
            # and it may not come back into an ISR while it goes
            state = await cluster.state("t")
            assert state is not None
            refused = await active.controller.alter_partition(
                proposal(
                    cluster[1],
                    active,
                    (1, 3, 2),
                    state.partition_epoch,
                    leader_epoch=state.leader_epoch,
                ),
                3,
            )
            error = refused.topics[0].partitions[0].error_code
            assert error == ErrorCode.INELIGIBLE_REPLICA

    run(scenario)


def test_leaders_go_back_to_preferred_replicas(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            await cluster.make_topic("t", {0: (2, 1)})
            await cluster.until_state("t", leader=2, isr=(2, 1))
            await cluster.remove(2)
            state = await cluster.until_state("t", leader=1, isr=(1,))
            await cluster.add(2)
            await cluster.all_alive(1, 2)
            active = await cluster.active()
            assert active.controller.term is not None
            await active.controller.term.rebalance_leaders(10)
            assert await cluster.state("t") == state  # not in sync yet
            await active.controller.alter_partition(
                proposal(cluster[1], active, (1, 2), state.partition_epoch, leader_epoch=1), 3
            )
            await active.controller.term.rebalance_leaders(10)
            assert (await cluster.until_state("t", leader=2, isr=(1, 2))).leader_epoch == 2

    run(scenario)


def test_controller_without_zookeeper_answers_not_controller(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """Before its session can be known to have expired; it goes on afterwards if it has not."""
    short = {"zookeeper_session_timeout_ms": "3000"}

    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, **short) as cluster:
            await cluster.make_topic("t", {0: (1, 2)})
            state = await cluster.until_state("t", leader=1, isr=(1, 2))
            active = await cluster.active()
            epoch = active.controller.epoch
            asked = proposal(cluster[1], active, (1,), state.partition_epoch)
            zookeeper.pause()
            try:
                answer = await active.controller.alter_partition(asked, 3)
                assert answer.error_code == ErrorCode.NOT_CONTROLLER
                assert not active.controller.is_active
                assert await active.controller.auto_create(["u"])
            finally:
                zookeeper.resume()
            again = await cluster.active()
            assert again.controller.epoch >= epoch
            await cluster.make_topic("later", {0: (1, 2)})

            async def has_state() -> bool:
                return await cluster.state("later") is not None

            await wait_until(has_state)

    run(scenario)
