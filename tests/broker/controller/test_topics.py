"""Topics made, refused, made automatically and deleted, through the controller's requests."""

from __future__ import annotations

import asyncio
from uuid import UUID

from tests.broker.controller.controller_nodes import Node, nodes, run
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import wait_until
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from urteil.broker.zookeeper import znodes

Creatable = CreateTopicsRequest.CreatableTopic
Config = CreateTopicsRequest.CreatableTopicConfig
ReplicaAssignment = CreateTopicsRequest.CreatableReplicaAssignment


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> Creatable:
    return Creatable(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[Config(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def manual(name: str, *replicas: tuple[int, ...]) -> Creatable:
    return Creatable(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            ReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(replicas)
        ],
    )


async def create(
    node: Node, *topics: Creatable, timeout_ms: int = 60_000, validate_only: bool = False
) -> CreateTopicsResponse:
    request = CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
    return await node.controller.create_topics(request, 7)


async def delete(
    node: Node, *names: str, timeout_ms: int = 60_000, by_id: UUID | None = None
) -> DeleteTopicsResponse:
    state = DeleteTopicsRequest.DeleteTopicState
    asked = [state(name=name) for name in names]
    if by_id is not None:
        asked.append(state(name=None, topic_id=by_id))
    return await node.controller.delete_topics(
        DeleteTopicsRequest(topics=asked, timeout_ms=timeout_ms), 6
    )


def test_create_topics_answers_once_leaders_are_known(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, num_partitions="3") as cluster:
            active = await cluster.active()
            response = await create(
                active, topic("a", 2, 2, retention_ms="5"), topic("b", -1, -1), manual("c", (2, 1))
            )
            a, b, c = response.topics
            assert [topic.error_code for topic in response.topics] == [0, 0, 0]
            assert (a.num_partitions, a.replication_factor) == (2, 2)
            assert (b.num_partitions, b.replication_factor) == (3, 2)
            assert (c.num_partitions, c.replication_factor) == (1, 2)
            assert a.topic_id.int
            assert a.configs is not None
            settings = {config.name: (config.value, config.config_source) for config in a.configs}
            assert settings["retention.ms"] == ("5", 1)
            assert settings["segment.bytes"] == ("1073741824", 5)
            for name in "abc":
                assert await cluster.state(name)
                assert active.metadata(name)  # its own broker heard of it before the answer
            assert await active.controller.configs.topic_overrides("a") == {"retention.ms": "5"}

    run(scenario)


def test_newly_elected_controller_loads_before_it_answers(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """Metadata names it before it knows the cluster: what it is asked for waits until it does."""

    async def scenario() -> None:
        async with nodes(zookeeper, chroot) as cluster:
            node = await cluster.add(1)
            while not node.controller.is_active:
                await asyncio.sleep(0)
            assert node.controller.term is None
            made, gone = await asyncio.gather(create(node, topic("a")), delete(node, "b"))
            assert made.topics[0].error_code == ErrorCode.NONE
            assert gone.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario)


def test_rejected_topics_and_their_errors(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            active = await cluster.active()
            (passive,) = (node for node in cluster.values() if node is not active)
            assert not (await create(active, topic("my.topic"))).topics[0].error_code
            cases = [
                (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
                (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
                (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
                (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
                (topic("my_topic"), ErrorCode.INVALID_TOPIC_EXCEPTION),
                (topic("my.topic"), ErrorCode.TOPIC_ALREADY_EXISTS),
                (topic("big", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
                (topic("zero", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
                (topic("none", 0, 1), ErrorCode.INVALID_PARTITIONS),
                (topic("neg", -2, 1), ErrorCode.INVALID_PARTITIONS),
                (topic("huge", 2**31 - 1, 1), ErrorCode.INVALID_PARTITIONS),
                (topic("long", 90_000, 1), ErrorCode.INVALID_PARTITIONS),  # more than 1 MiB of text
                (topic("c1", nonsense="1"), ErrorCode.INVALID_CONFIG),
                (topic("c2", retention_ms="-2"), ErrorCode.INVALID_CONFIG),
                (topic("c3", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
                (topic("c4", cleanup_policy="burn"), ErrorCode.INVALID_CONFIG),
                (topic("c5", retention_ms=None), ErrorCode.INVALID_CONFIG),
                (manual("m1", (1, 1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
                (manual("m2", (1, 2), (1,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
                (manual("m3", ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ]
            response = await create(active, *(asked for asked, _ in cases))
            for result, (_, error) in zip(response.topics, cases, strict=True):
                assert ErrorCode(result.error_code) is error, result
                assert result.error_message, result
            both = Creatable(
                name="both",
                num_partitions=1,
                replication_factor=1,
                assignments=[ReplicaAssignment(partition_index=0, broker_ids=[1])],
            )
            gap = Creatable(
                name="gap",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[ReplicaAssignment(partition_index=1, broker_ids=[1])],
            )
            twice = await create(active, both, gap, topic("twin"), topic("twin"))
            assert {topic.name: topic.error_code for topic in twice.topics} == {
                "both": ErrorCode.INVALID_REQUEST,
                "gap": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "twin": ErrorCode.INVALID_REQUEST,
            }
            elsewhere = await create(passive, topic("t"))
            assert elsewhere.topics[0].error_code == ErrorCode.NOT_CONTROLLER
            only = await create(active, topic("dry", 2, 2), validate_only=True)
            assert (only.topics[0].error_code, only.topics[0].num_partitions) == (0, 2)
            assert await active.zk.children(znodes.TOPICS) == ["my.topic"]

    run(scenario)


def test_topic_on_absent_brokers_times_out_and_gets_leaders_later(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1) as cluster:
            response = await create(cluster[1], manual("t", (2,)), timeout_ms=100)
            assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
            assert await cluster.state("t") is None
            await cluster.add(2)
            await cluster.until_state("t", leader=2, isr=(2,))

    run(scenario)


def test_auto_creation_from_any_broker(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, offsets_topic_num_partitions="5") as cluster:
            made = await asyncio.gather(
                *(
                    node.controller.auto_create(["t", "__consumer_offsets", "a b"])
                    for node in cluster.values()
                )
            )
            for errors in made:
                assert errors == {
                    "t": ErrorCode.LEADER_NOT_AVAILABLE,
                    "__consumer_offsets": ErrorCode.LEADER_NOT_AVAILABLE,
                    "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
                }
            await wait_until(lambda: len(cluster[1].metadata("__consumer_offsets")) == 5, "offsets")
            overrides = await cluster[1].controller.configs.topic_overrides("__consumer_offsets")
            assert overrides == {
                "compression.type": "producer",
                "cleanup.policy": "compact",
                "segment.bytes": "104857600",
            }
            await cluster.remove(2)
            alone = await cluster[1].controller.auto_create(["u"])
            assert alone == {"u": ErrorCode.INVALID_REPLICATION_FACTOR}

    run(scenario)


def test_deletion_removes_all_znodes_and_replicas(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            active = await cluster.active()
            made = await create(active, topic("a", 3, 2, retention_ms="5"), topic("b"))
            response = await delete(active, "a", "nobody", by_id=made.topics[1].topic_id)
            a, nobody, b = response.responses
            assert (a.error_code, a.topic_id.int) == (0, 0)  # only a request by id receives it
            assert b.topic_id == made.topics[1].topic_id
            assert nobody.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert (b.error_code, b.name) == (0, "b")
            for path in (znodes.TOPICS, znodes.DELETE_TOPICS, "/config/topics"):
                await until_empty(active, path)
            for node in cluster.values():
                assert {(p, d) for t, p, d in node.stopped() if t == "a"} == {
                    (0, True),
                    (1, True),
                    (2, True),
                }
                assert {partition.leader for partition in node.metadata("a").values()} == {-2}
            again = await create(active, topic("a"))
            assert again.topics[0].error_code == 0
            assert again.topics[0].topic_id != made.topics[0].topic_id
            strange = await delete(active, by_id=UUID(int=7))
            assert strange.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    run(scenario)


async def until_empty(node: Node, path: str) -> None:
    async def is_empty() -> bool:
        return not await node.zk.children(path)

    await wait_until(is_empty)


def test_deletion_waits_for_absent_replicas_across_controllers(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2, 3) as cluster:
            await cluster.make_topic("t", {0: (1, 2, 3)})
            await cluster.until_state("t", leader=1, isr=(1, 2, 3))
            first = await cluster.active()
            gone = next(node for node in cluster if node != first.id)
            await cluster.remove(gone)
            await cluster.all_alive(*sorted(cluster))
            assert (await delete(first, "t")).responses[0].error_code == 0
            assert await first.zk.children(znodes.TOPICS) == ["t"]
            await cluster.remove(first.id)
            await cluster.active(above_epoch=first.controller.epoch)
            await cluster.add(gone)
            (left,) = (node for id, node in cluster.items() if id != gone)
            assert await left.zk.children(znodes.TOPICS) == ["t"]
            assert not cluster[gone].states("t")
            await cluster.add(first.id)
            await until_empty(left, znodes.TOPICS)
            assert cluster[gone].stopped() == [("t", 0, True)]

    run(scenario)


def test_disabled_deletion_is_rejected(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, delete_topic_enable="false") as cluster:
            await create(cluster[1], topic("t"))
            refused = await delete(cluster[1], "t")
            assert refused.responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED
            await cluster[1].zk.create(znodes.delete_topic_path("t"))  # as old tools do
            await until_empty(cluster[1], znodes.DELETE_TOPICS)
            assert await cluster[1].zk.children(znodes.TOPICS) == ["t"]

    run(scenario)


def test_stale_controller_epoch_verifies_the_election(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            active = await cluster.active()
            (other,) = (node for node in cluster.values() if node is not active)
            other.refuse_with = ErrorCode.STALE_CONTROLLER_EPOCH
            await create(active, topic("t"))
            assert active.controller.is_active  # it is the newest: the broker errs
            other.refuse_with = ErrorCode.NONE
            epoch = active.controller.epoch
            await active.zk.set(znodes.CONTROLLER_EPOCH, str(epoch + 3).encode())
            other.refuse_with = ErrorCode.STALE_CONTROLLER_EPOCH
            active.controller.term.senders.send(  # type: ignore[union-attr]
                other.id, other.received[-1]
            )
            await cluster.active(above_epoch=epoch + 3)

    run(scenario)


def test_zookeeper_outage_ends_requests_at_their_timeout(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """Apache Kafka's handler thread waits until ZooKeeper is back; no client does."""

    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            active = await cluster.active()
            assert (await create(active, topic("a"))).topics[0].error_code == 0
            zookeeper.pause()
            try:
                async with asyncio.timeout(20):
                    made = create(active, topic("b"), timeout_ms=300)
                    gone = delete(active, "a", timeout_ms=300)
                    created, deleted = await asyncio.gather(made, gone)
            finally:
                zookeeper.resume()
            assert created.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
            assert deleted.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT

    run(scenario)
