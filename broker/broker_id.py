"""The broker id where the property file has none (`KafkaServer.getOrGenerateBrokerId`).

The id in a `meta.properties` of a log directory wins. Without one, the id is the next number above
`reserved.broker.max.id`; ZooKeeper counts it as the version of `/brokers/seqid`. The log manager
writes the id to each directory without one, so that later starts find it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.values import ConfigError
from urteil.broker.environment import Environment
from urteil.broker.log.checkpoints import META_PROPERTIES, DamagedFile, read_meta
from urteil.broker.log.storage import Storage
from urteil.broker.net.host_names import Resolver
from urteil.broker.zookeeper.registration import create_persistent_paths
from urteil.broker.zookeeper.session import Session

log = logging.getLogger("broker")

_SEQUENCE = "/brokers/seqid"


async def with_broker_id(config: BrokerConfig, environment: Environment) -> BrokerConfig:
    """Return the configuration with a broker id. Raises ConfigError, and TimeoutError if ZooKeeper
    is needed and does not answer."""
    if config.broker_id >= 0:
        return config
    broker_id = stored_id(environment.storage, config.log_dirs)
    if broker_id is None:
        broker_id = await _generate_id(config, environment)
        log.info("no broker.id: this broker is %d from now on", broker_id)
    known = {"broker.id": str(broker_id), "node.id": str(broker_id)}
    properties = LiveProperties({**config.properties.static, **known})
    return replace(config, broker_id=broker_id, properties=properties)


def stored_id(storage: Storage, folders: tuple[str, ...]) -> int | None:
    """Return the id in the log directories, or None. Raises ConfigError if directories disagree, or
    if no readable directory has an id and another is damaged."""
    stored_ids: tuple[int, Path] | None = None
    damaged: list[DamagedFile] = []
    for stored_number, path in _read_stored_ids(storage, folders, damaged):
        if stored_ids is not None and stored_number != stored_ids[0]:
            raise ConfigError(
                f"Stored node id {stored_number} doesn't match previous node id {stored_ids[0]} "
                f"in {path}: {stored_ids[1]} has that one. If you moved your data, make sure your "
                "configured node id matches; log.dirs names folders of one broker"
            )
        stored_ids = stored_ids or (stored_number, path)
    if stored_ids is not None:
        return stored_ids[0]
    if damaged:
        raise ConfigError(f"{damaged[0]}; it may have this broker's id: mend it, or set broker.id")
    return None


def _read_stored_ids(
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


async def _generate_id(config: BrokerConfig, environment: Environment) -> int:
    resolver = Resolver(config.urteil_hosts_file)
    zk = environment.session(
        config.zookeeper_connect, config.zookeeper_session_timeout_ms, resolver.resolve
    )
    await zk.connect(config.zookeeper_patience_ms / 1000)
    try:
        await create_persistent_paths(zk)
        return await _next_number(zk) + int(config.properties.value("reserved.broker.max.id"))
    finally:
        await zk.close()


async def _next_number(zk: Session) -> int:
    """Return a number that no other call in the cluster gets, from 1 on."""
    return (await zk.set(_SEQUENCE, b"")).version
