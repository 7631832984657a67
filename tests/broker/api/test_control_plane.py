"""Requests of the controller to a broker that has just started."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.broker.api.asking import context
from tests.broker.server.raw import run
from urteil.broker.api.control_plane import stop_replica, update_metadata
from urteil.broker.api.metadata import metadata
from urteil.broker.replication.control import ReplicaControl
from urteil.broker.server.metadata_cache import MetadataCache
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
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


def test_what_was_meant_for_an_earlier_life_waits_for_the_registration_and_is_refused() -> None:
    async def scenario() -> None:
        session: Any = Slow()
        registration = Registration(session, BrokerInfo(id=1, endpoints=()), lambda: 0)
        replicas: Any = SimpleNamespace(controller_epoch=0)
        cache: Any = None
        control = ReplicaControl(replicas, cache, lambda: registration.epoch, "PLAINTEXT")
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


def test_metadata_waits_for_the_controllers_first_word() -> None:
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
        one = UpdateMetadataRequest.UpdateMetadataBroker(id=1, endpoints=[endpoint])
        cache.update(UpdateMetadataRequest(controller_id=1, live_brokers=[one]))
        assert [broker.node_id for broker in (await answer).brokers] == [1]

    run(scenario())


def alive(*brokers: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=1,
        live_brokers=[UpdateMetadataRequest.UpdateMetadataBroker(id=one) for one in brokers],
    )


def test_when_a_broker_left_the_partitions_look_whom_they_wait_for() -> None:
    """A follower about to join holds up the high watermark; no fetch tells that it is gone."""

    async def scenario() -> None:
        seen: list[str] = []

        async def registered() -> None:
            return None

        broker: Any = SimpleNamespace(
            authorizer=None,
            registration=SimpleNamespace(registered=registered),
            control=SimpleNamespace(fence=lambda *_: ErrorCode.NONE),
            metadata=MetadataCache(),
            channels=SimpleNamespace(forget=lambda one: seen.append(f"forget {one}")),
            replicas=SimpleNamespace(shrink_isrs=lambda: seen.append("look")),
        )
        told = context(ApiKey.UPDATE_METADATA, 8)
        await update_metadata(broker, told, alive(1, 2))
        assert seen == []
        await update_metadata(broker, told, alive(1))
        assert seen == ["forget 2", "look"]

    run(scenario())
