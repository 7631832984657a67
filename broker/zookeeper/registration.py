"""Registration of a broker: persistent paths, cluster id, and the node `/brokers/ids/N`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from uuid import UUID

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import (
    LOST,
    BadVersionError,
    Create,
    Delete,
    MultiFailed,
    NodeExistsError,
    NoNodeError,
    Session,
)
from urteil.broker.zookeeper.znodes import BrokerInfo

log = logging.getLogger("zookeeper")


class AlreadyRegistered(Exception):
    """Another broker has this broker's id or one of its addresses. The message names both."""


async def create_persistent_paths(zk: Session) -> None:
    for path in znodes.PERSISTENT:
        await zk.ensure(path)
    await _create_if_missing(zk, znodes.FEATURE, znodes.encode_feature())


async def cluster_id(zk: Session, make_uuid: Callable[[], UUID]) -> str:
    """Return the cluster id; the first broker creates it."""
    await zk.ensure("/cluster")
    made = znodes.encode_uuid(make_uuid())
    await _create_if_missing(zk, znodes.CLUSTER_ID, znodes.encode_cluster_id(made))
    data, _ = await zk.get(znodes.CLUSTER_ID)
    return znodes.decode_cluster_id(data)


async def _create_if_missing(zk: Session, path: str, data: bytes) -> None:
    while await zk.exists(path) is None:
        try:
            await zk.create(path, data)
        except (NodeExistsError, *LOST):
            continue


async def check_addresses(zk: Session, broker_id: int, addresses: Collection[str]) -> None:
    """Raise AlreadyRegistered if another broker has registered one of these HOST:PORT.

    Like `KafkaServer.createBrokerInfo`, this compares the advertised addresses of the property
    file. Port 0 and empty hosts are skipped.
    """
    for other in await read_brokers(zk):
        shared = sorted(_addresses(other).intersection(addresses))
        if other.id != broker_id and shared:
            raise AlreadyRegistered(
                f"Configured end points {','.join(shared)} in advertised listeners are already "
                f"registered by broker {other.id}: advertise other addresses for broker "
                f"{broker_id}; if broker {other.id} was killed, its registration ends with its "
                "session"
            )


class Registration:
    """The ephemeral node of this broker. The owner registers again after expiry.

    `patience_s` limits how long a node of another session may exist before it counts as another
    broker's: slightly more than a session timeout.
    """

    def __init__(
        self, zk: Session, info: BrokerInfo, now_ms: Callable[[], int], patience_s: float = 30.0
    ) -> None:
        self._zk = zk
        self._now_ms = now_ms
        self._patience_s = patience_s
        self._registered = asyncio.Event()
        self.info = info

    @property
    def epoch(self) -> int:
        """The broker epoch: czxid of the node, -1 before the first registration."""
        return self.info.epoch

    async def await_registration(self) -> None:
        """Wait for the first registration. Before it, requests that the controller sent to an
        earlier incarnation of this broker cannot be recognized (KIP-380)."""
        await self._registered.wait()

    async def register(self) -> int:
        """Register for the current session and return the new broker epoch.

        A node of an earlier session of this broker (killed and restarted within the session
        timeout) is replaced in one multi; Apache Kafka exits in that case. A node with other
        addresses belongs to another broker while it exists: this raises AlreadyRegistered.
        """
        path = znodes.broker_path(self.info.id)
        while True:
            stat = await self._zk.exists(path)
            if stat is not None and stat.ephemeral_owner == self._zk.session_id:
                self.info = replace(self.info, epoch=stat.czxid)
                self._registered.set()
                log.info("registered broker %d with epoch %d", self.info.id, stat.czxid)
                return stat.czxid
            if stat is not None and await self._wait_for_another(path):
                continue
            data = znodes.encode_broker(self.info, self._now_ms())
            await self._create(path, data, None if stat is None else stat.version)

    async def _wait_for_another(self, path: str) -> bool:
        """Whether the node had other addresses and has disappeared by now."""
        gone = asyncio.Event()
        try:
            data, stat = await self._zk.get(path, lambda _: gone.set())
        except NoNodeError:
            return True
        other = znodes.decode_broker(self.info.id, data, stat.czxid)
        if _addresses(other) & _addresses(self.info) or stat.ephemeral_owner == self._zk.session_id:
            return False
        where = ", ".join(sorted(_addresses(other)))
        log.warning("%s is registered at %s: waiting for its session to end", path, where)
        try:
            async with asyncio.timeout(self._patience_s):
                await gone.wait()
        except TimeoutError:
            raise AlreadyRegistered(
                f"broker.id {self.info.id} is already registered by another broker, at {where}: "
                f"the one at {', '.join(sorted(_addresses(self.info)))} needs an id of its own"
            ) from None
        return True

    async def _create(self, path: str, data: bytes, stale_version: int | None) -> None:
        """Try once to create the node; read back the result."""
        try:
            if stale_version is None:
                await self._zk.create(path, data, ephemeral=True)
            else:
                log.info("replacing %s of an earlier session", path)
                await self._zk.multi([Delete(path, stale_version), Create(path, data, True)])
        except (NodeExistsError, NoNodeError, BadVersionError, MultiFailed, *LOST) as why:
            log.info("registering %s again: %s", path, why)


def _addresses(info: BrokerInfo) -> set[str]:
    return {f"{endpoint.host}:{endpoint.port}" for endpoint in info.endpoints}


async def read_brokers(zk: Session, watch: Callable[[str], None] | None = None) -> list[BrokerInfo]:
    """Return all registered brokers by id; `watch` watches their list."""
    brokers = []
    for name in await zk.children(znodes.BROKER_IDS, watch):
        try:
            data, stat = await zk.get(f"{znodes.BROKER_IDS}/{name}")
        except NoNodeError:
            continue  # deleted meanwhile; the watch will fire
        brokers.append(znodes.decode_broker(int(name), data, stat.czxid))
    return sorted(brokers, key=lambda info: info.id)
