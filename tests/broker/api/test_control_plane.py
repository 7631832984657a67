"""Requests of the controller to a broker that has just started."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tests.broker.api.request_contexts import context
from tests.broker.net.raw import run
from tests.waiting import wait_until
from urteil.broker.api.control_plane import leader_and_isr, stop_replica, update_metadata
from urteil.broker.api.metadata import metadata
from urteil.broker.base.tasks import Tasks
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.replication.role_changes import RoleChanges
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    LeaderAndIsrRequest,
    MetadataRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from urteil.broker.zookeeper.registration import Registration
from urteil.broker.zookeeper.session import Stat
from urteil.broker.zookeeper.znodes import BrokerInfo

OLD_LIFE, THIS_LIFE = 41, 42


class Slow:
    """A ZooKeeper session that finds the own node registered, once it may answer."""

    session_id = 7

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def exists(self, _: str) -> Stat:
        await self.may_answer.wait()
        return Stat(czxid=THIS_LIFE, mzxid=THIS_LIFE, version=0, ephemeral_owner=self.session_id)


def test_request_for_an_earlier_registration_is_rejected() -> None:
    async def scenario() -> None:
        session: Any = Slow()
        registration = Registration(session, BrokerInfo(id=1, endpoints=()), lambda: 0)
        replicas: Any = SimpleNamespace(controller_epoch=0)
        cache: Any = None
        control = RoleChanges(replicas, cache, lambda: registration.epoch, "PLAINTEXT")
        broker: Any = SimpleNamespace(
            authorizer=None,
            registration=registration,
            control=control,
            logs=SimpleNamespace(logs=list),
            topic_settings=None,
        )
        request = StopReplicaRequest(controller_id=2, controller_epoch=1, broker_epoch=OLD_LIFE)
        answer = asyncio.ensure_future(
            stop_replica(broker, context(ApiKey.STOP_REPLICA, 4), request)
        )
        registering = asyncio.ensure_future(registration.register())
        await asyncio.sleep(0.02)
        assert not answer.done()
        session.may_answer.set()
        assert await registering == THIS_LIFE
        assert (await answer).error_code == ErrorCode.STALE_BROKER_EPOCH

    run(scenario())


def test_metadata_waits_for_the_first_update() -> None:
    async def scenario() -> None:
        cache = MetadataCache()
        broker: Any = SimpleNamespace(authorizer=None, metadata=cache, cluster_id="c")
        request = MetadataRequest(topics=None)
        answer = asyncio.ensure_future(metadata(broker, context(ApiKey.METADATA, 12), request))
        await asyncio.sleep(0.02)
        assert not answer.done()
        endpoint = UpdateMetadataRequest.UpdateMetadataEndpoint(
            port=9092, host="b1", listener="PLAINTEXT"
        )
        live_broker = UpdateMetadataRequest.UpdateMetadataBroker(id=1, endpoints=[endpoint])
        cache.update(UpdateMetadataRequest(controller_id=1, live_brokers=[live_broker]))
        assert [broker.node_id for broker in (await answer).brokers] == [1]

    run(scenario())


def alive(*brokers: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=1,
        live_brokers=[UpdateMetadataRequest.UpdateMetadataBroker(id=broker) for broker in brokers],
    )


def test_leaving_broker_makes_leaders_check_their_isr() -> None:
    """A follower about to join holds up the high watermark; no fetch reports that it left."""

    async def scenario() -> None:
        calls: list[str] = []

        async def await_registration() -> None:
            return None

        broker: Any = SimpleNamespace(
            authorizer=None,
            registration=SimpleNamespace(await_registration=await_registration),
            control=SimpleNamespace(
                fence=lambda *_: ErrorCode.NONE, apply_metadata=lambda _: None, turn=asyncio.Lock()
            ),
            metadata=MetadataCache(),
            channels=SimpleNamespace(forget=lambda broker_id: calls.append(f"forget {broker_id}")),
            replicas=SimpleNamespace(shrink_isrs=lambda: calls.append("look")),
        )
        request_context = context(ApiKey.UPDATE_METADATA, 8)
        await update_metadata(broker, request_context, alive(1, 2))
        assert calls == []
        await update_metadata(broker, request_context, alive(1))
        assert calls == ["forget 2", "look"]

    run(scenario())


def topics(broker_epoch: int, controller_epoch: int, **ids: int) -> UpdateMetadataRequest:
    request = UpdateMetadataRequest
    return request(
        controller_id=1,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=[
            request.UpdateMetadataTopicState(
                topic_name=name,
                topic_id=UUID(int=topic_id),
                partition_states=[
                    request.UpdateMetadataPartitionState(partition_index=index, leader=1)
                    for index in (0, 1)
                ],
            )
            for name, topic_id in ids.items()
        ],
    )


@pytest.mark.parametrize("now", [(9, 1), (7, 2)], ids=["session expired", "controller died"])
def test_unannounced_deletion_is_found_in_zookeeper(now: tuple[int, int]) -> None:
    """A broker without a replica learns of a deletion from the controller alone."""

    async def scenario() -> None:
        forgotten: list[str] = []
        answers, tasks = asyncio.Event(), Tasks("test")

        async def await_registration() -> None:
            return None

        async def sync(_: str) -> None:
            return None

        async def children(_: str) -> list[str]:
            await answers.wait()
            return ["kept"]

        broker: Any = SimpleNamespace(
            authorizer=None,
            registration=SimpleNamespace(await_registration=await_registration),
            control=SimpleNamespace(
                fence=lambda *_: ErrorCode.NONE, apply_metadata=lambda _: None, turn=asyncio.Lock()
            ),
            metadata=MetadataCache(),
            groups=SimpleNamespace(tasks=tasks),
            topic_settings=SimpleNamespace(forget=forgotten.append),
            zk=SimpleNamespace(sync=sync, children=children),
        )
        request_context = context(ApiKey.UPDATE_METADATA, 8)
        await update_metadata(broker, request_context, topics(7, 1, kept=1, gone=2, anew=3))
        await update_metadata(broker, request_context, topics(*now))
        await update_metadata(broker, request_context, topics(*now, kept=1, new=5))
        await update_metadata(
            broker, request_context, topics(*now, anew=4)
        )  # after ZooKeeper looked
        answers.set()
        await wait_until(lambda: "gone" in forgotten, "the topic that is gone")
        assert set(broker.metadata.topics) == {"kept", "new", "anew"}
        assert set(broker.metadata.topic_names.values()) == {"kept", "new", "anew"}
        assert forgotten == ["anew", "gone"]

    run(scenario())


def test_recreated_topic_loads_its_own_settings() -> None:
    """The broker did not learn of the deletion, and hosts the new topic."""

    async def scenario() -> None:
        done: list[str] = []

        async def await_registration() -> None:
            return None

        async def load(topics: Iterable[str]) -> None:
            done.append(f"load {sorted(topics)}")

        broker: Any = SimpleNamespace(
            authorizer=None,
            registration=SimpleNamespace(await_registration=await_registration),
            control=SimpleNamespace(leader_and_isr=lambda _: iter(()), turn=asyncio.Lock()),
            metadata=MetadataCache(),
            topic_settings=SimpleNamespace(
                forget=lambda topic: done.append(f"forget {topic}"), load=load
            ),
        )
        broker.metadata.update(topics(7, 1, anew=3, same=4))
        state = LeaderAndIsrRequest.LeaderAndIsrPartitionState(partition_index=0)
        request = LeaderAndIsrRequest(
            topic_states=[
                LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=name, topic_id=UUID(int=topic_id), partition_states=[state]
                )
                for name, topic_id in {"anew": 5, "same": 4, "new": 6}.items()
            ]
        )
        await leader_and_isr(broker, context(ApiKey.LEADER_AND_ISR, 7), request)
        assert done == ["forget anew", "load ['anew', 'new', 'same']"]

    run(scenario())
