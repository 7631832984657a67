"""Offsets of consumers of 0.8 in ZooKeeper, in Apache Kafka's layout.

Source: `KafkaZkClient.getConsumerOffset` and `setOrCreateConsumerOffset`.
"""

from __future__ import annotations

import re

from urteil.broker.zookeeper.session import LOST, NodeExistsError, NoNodeError, Session
from urteil.broker.zookeeper.session_types import is_node_name

_NUMBER = re.compile(r"[+-]?\d+")


def _path(group: str, topic: str, partition: int) -> str:
    """Return the path; a group's name may contain slashes. Raises ValueError for an invalid node
    name."""
    if not all(map(is_node_name, group.split("/"))):
        raise ValueError(f"no path has the name {group!r} in it")
    return f"/consumers/{group}/offsets/{topic}/{partition}"


async def read_offset(zk: Session, group: str, topic: str, partition: int) -> int | None:
    """Return the offset or None. Raises ValueError for malformed data, which people may have
    written by hand."""
    try:
        data, _ = await zk.get(_path(group, topic, partition))
    except NoNodeError:
        return None
    text = data.decode()
    if not _NUMBER.fullmatch(text) or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError(f"{text!r} is not an offset")
    return int(text)


async def write_offset(zk: Session, group: str, topic: str, partition: int, offset: int) -> None:
    """Write an offset, again after a lost connection. Raises ValueError."""
    path, data = _path(group, topic, partition), b"%d" % offset
    while True:
        try:
            await zk.set(path, data)
        except NoNodeError:
            try:
                await zk.create(path, data, make_parents=True)
            except (NodeExistsError, *LOST):
                continue
        except LOST:
            continue
        return
