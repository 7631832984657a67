"""The id of a broker whose property file has none (`KafkaServer.getOrGenerateBrokerId`).

It is the one that a `meta.properties` in a log directory says, else the next one after
`reserved.broker.max.id`, which ZooKeeper counts by the version of `/brokers/seqid`. The log manager
then writes it to every directory that says none, so that it stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.values import ConfigError
from urteil.broker.environment import Machine
from urteil.broker.log.checkpoints import META_PROPERTIES, DamagedFile, read_meta
from urteil.broker.log.storage import Storage
from urteil.broker.net.host_names import Resolver
from urteil.broker.zookeeper.registration import create_persistent_paths
from urteil.broker.zookeeper.session import Session

log = logging.getLogger("broker")

_SEQUENCE = "/brokers/seqid"


async def identified(config: BrokerConfig, machine: Machine) -> BrokerConfig:
    """The configuration with the broker's id. Raises ConfigError, and TimeoutError when ZooKeeper
    is needed and away."""
    if config.broker_id >= 0:
        return config
    broker_id = stored_id(machine.storage, config.log_dirs)
    if broker_id is None:
        broker_id = await _generated(config, machine)
        log.info("no broker.id: this broker is %d from now on", broker_id)
    known = {"broker.id": str(broker_id), "node.id": str(broker_id)}
    properties = LiveProperties({**config.properties.static, **known})
    return replace(config, broker_id=broker_id, properties=properties)


def stored_id(storage: Storage, folders: tuple[str, ...]) -> int | None:
    """What the directories say, None where none says anything. Raises ConfigError when they
    disagree, or when the only ones that may say it cannot be understood."""
    found: tuple[int, Path] | None = None
    damaged: list[DamagedFile] = []
    for stored, path in _stored(storage, folders, damaged):
        if found is not None and stored != found[0]:
            raise ConfigError(
                f"Stored node id {stored} doesn't match previous node id {found[0]} in {path}: "
                f"{found[1]} has that one. If you moved your data, make sure your configured node "
                "id matches; log.dirs names folders of one broker"
            )
        found = found or (stored, path)
    if found is not None:
        return found[0]
    if damaged:
        raise ConfigError(f"{damaged[0]}; it may have this broker's id: mend it, or set broker.id")
    return None


def _stored(
    storage: Storage, folders: tuple[str, ...], damaged: list[DamagedFile]
) -> Iterator[tuple[int, Path]]:
    for folder in sorted(folders):
        try:
            meta = read_meta(storage, Path(folder))
        except DamagedFile as error:
            damaged.append(error)
            continue
        except OSError as error:
            log.warning("%s cannot be read for this broker's id: %s", folder, error)
            continue
        if not meta and storage.exists(Path(folder) / META_PROPERTIES):
            damaged.append(DamagedFile(f"{Path(folder) / META_PROPERTIES} is empty"))
        if "broker.id" in meta:
            yield int(meta["broker.id"]), Path(folder) / META_PROPERTIES


async def _generated(config: BrokerConfig, machine: Machine) -> int:
    resolver = Resolver(config.urteil_hosts_file)
    zk = machine.session(
        config.zookeeper_connect, config.zookeeper_session_timeout_ms, resolver.resolve
    )
    await zk.connect(config.zookeeper_patience_ms / 1000)
    try:
        await create_persistent_paths(zk)
        return await _next_number(zk) + int(config.properties.value("reserved.broker.max.id"))
    finally:
        await zk.close()


async def _next_number(zk: Session) -> int:
    """Each call by any broker gives another, from 1 on."""
    return (await zk.set(_SEQUENCE, b"")).version
