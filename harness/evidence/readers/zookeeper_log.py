"""Every version of the cluster's znodes, from ZooKeeper's own transaction log.

Watches skip versions; the log has them all. Format: ZooKeeper's `FileTxnLog`, `TxnHeader` and the
records of `zookeeper.jute` (3.4 to 3.9): a file header, then per transaction its Adler-32, its
length, its bytes and 0x42; zero bytes after the last one are preallocated space.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]

_MAGIC = b"ZKLG"
_FILE_HEADER = 16
_END = 0x42
_TXN = struct.Struct(">qiqqi")
_CREATE, _DELETE, _SET, _MULTI = frozenset((1, 15, 19, 21)), frozenset((2, 20)), 5, 14
_CLOSE_SESSION = -11

_TOPIC = re.compile(r"/brokers/topics/([^/]+)")
_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_WISH = re.compile(r"/admin/delete_topics/([^/]+)")
_BROKER = re.compile(r"/brokers/ids/(\d+)")
_SETTINGS = re.compile(r"/config/(topics|clients)/([^/]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one znode.

    `data` None is a deletion. `owner` is the session of an ephemeral znode. `version` is the
    znode's own (-1 when deleted).
    """

    zxid: int
    wall_ms: int
    path: str
    data: bytes | None
    version: int
    owner: int = 0


class _Reader:
    """Jute's primitives over a buffer. Raises struct.error or IndexError at a premature end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return int(value)

    def buffer(self) -> bytes:
        length = self.number(">i")
        if length < 0:
            return b""
        if self.at + length > len(self.data):
            raise struct.error("a buffer lies about its length")
        self.at += length
        return self.data[self.at - length : self.at]

    def text(self) -> str:
        return self.buffer().decode()


@dataclass(slots=True)
class LogFiles:
    """The files of one server's log; `damage` in sentences."""

    transactions: int = 0
    first_zxid: int | None = None
    last_zxid: int | None = None
    damage: list[str] = field(default_factory=list)


def find_log_files(data: Path) -> list[Path]:
    """The transaction log files of a server's data directory, in order of zxid."""
    return sorted((data / "version-2").glob("log.*"), key=lambda path: int(path.suffix[1:], 16))


def find_longest_log(data_dirs: list[Path]) -> Path | None:
    """The server whose log reaches furthest; among equals the one with the most transactions.

    A server that was away may have received the missing ones as a snapshot.
    """
    reached: list[tuple[int, int, Path]] = []
    for data in data_dirs:
        files = LogFiles()
        for _ in read_changes(data, files):
            pass
        if files.last_zxid is not None:
            reached.append((files.last_zxid, files.transactions, data))
    return max(reached, key=lambda log_end: log_end[:2])[2] if reached else None


def read_changes(data: Path, files: LogFiles) -> Iterator[Change]:
    """Every change in order of zxid. A damaged tail ends its file and is recorded in `files`."""
    ephemerals: dict[int, set[str]] = {}
    for path in find_log_files(data):
        for txn in _transactions(path, files):
            reader = _Reader(txn)
            client, _cxid, zxid, wall_ms, kind = _TXN.unpack_from(txn)
            reader.at = _TXN.size
            files.transactions += 1
            files.first_zxid = zxid if files.first_zxid is None else files.first_zxid
            files.last_zxid = zxid
            try:
                rows = list(_record(reader, kind, zxid, wall_ms, client, ephemerals))
            except (struct.error, IndexError, UnicodeDecodeError) as error:
                files.damage.append(f"{path.name}: transaction {zxid:#x} of type {kind}: {error}")
                continue
            yield from rows


def _transactions(path: Path, files: LogFiles) -> Iterator[bytes]:
    data = path.read_bytes()
    if data[:4] != _MAGIC:
        files.damage.append(f"{path.name}: no transaction log")
        return
    at = _FILE_HEADER
    while at + 12 <= len(data):
        checksum, length = struct.unpack_from(">qi", data, at)
        if length <= 0:
            return
        txn = data[at + 12 : at + 12 + length]
        at += 12 + length + 1
        if len(txn) < max(length, _TXN.size) or at > len(data) or data[at - 1] != _END:
            files.damage.append(f"{path.name}: the last transaction is cut")
            return
        if zlib.adler32(txn) != checksum:
            files.damage.append(f"{path.name}: a transaction's checksum is wrong")
            return
        yield txn


def _record(
    reader: _Reader, kind: int, zxid: int, wall_ms: int, client: int, owned: dict[int, set[str]]
) -> Iterator[Change]:
    if kind in _CREATE:
        path, data = reader.text(), reader.buffer()
        for _ in range(reader.number(">i")):
            reader.number(">i"), reader.buffer(), reader.buffer()
        ephemeral = kind in (1, 15) and bool(reader.number(">b"))
        if ephemeral:
            owned.setdefault(client, set()).add(path)
        owner = client if ephemeral else 0
        yield Change(zxid=zxid, wall_ms=wall_ms, path=path, data=data, version=0, owner=owner)
    elif kind in _DELETE:
        path = reader.text()
        for paths in owned.values():
            paths.discard(path)
        yield Change(zxid=zxid, wall_ms=wall_ms, path=path, data=None, version=-1)
    elif kind == _SET:
        path, data, version = reader.text(), reader.buffer(), reader.number(">i")
        yield Change(zxid=zxid, wall_ms=wall_ms, path=path, data=data, version=version)
    elif kind == _MULTI:
        for _ in range(reader.number(">i")):
            part_kind = reader.number(">i")
            part = _Reader(reader.buffer())
            yield from _record(part, part_kind, zxid, wall_ms, client, owned)
    elif kind == _CLOSE_SESSION:
        for path in sorted(owned.pop(client, set())):
            yield Change(zxid=zxid, wall_ms=wall_ms, path=path, data=None, version=-1)


def made_topic_id(topic: str, czxid: int) -> str:
    """The id of a topic in a cluster without topic ids. A topic that is created again has another
    one."""
    return f"{topic}@{czxid:x}"


class StateRows:
    """Rows of `states` from changes: partitions, topics and marks for deletion, settings of topics,
    quotas of clients, brokers, controller and epoch. Without `has_topic_ids`, ids are made of the
    creation of the topic's znode."""

    def __init__(self, wall_minus_monotonic_ns: int, *, has_topic_ids: bool = True) -> None:
        self._offset_ns = wall_minus_monotonic_ns
        self.has_topic_ids = has_topic_ids
        self._topic_ids: dict[str, str | None] = {}
        self._replicas: dict[str, dict[str, list[int]]] = {}

    def rows(self, change: Change) -> Iterator[Row]:
        """The row of a znode with such state; none for any other."""
        path = change.path
        row: Row = {
            "zxid": change.zxid,
            "at_ns": change.wall_ms * 1_000_000 - self._offset_ns,
            "wall_ms": change.wall_ms,
            "path": path,
            "version": change.version,
        }
        value = _value(change.data)
        if match := _STATE.fullmatch(path):
            yield row | self._state(match[1], int(match[2]), value)
        elif match := _TOPIC.fullmatch(path):
            yield row | self._topic(match[1], value, change)
        elif match := _WISH.fullmatch(path):
            yield row | {"topic": match[1], "topic_id": self._topic_ids.get(match[1])}
        elif _SETTINGS.fullmatch(path):
            settings = None if change.data is None else json.dumps(value.get("config", {}))
            yield row | {"settings": settings}
        elif _BROKER.fullmatch(path):
            yield row
        elif path == "/controller":
            yield row | {"controller": value.get("brokerid")}
        elif path == "/controller_epoch":
            yield row | {"controller_epoch": int(change.data or b"0")}

    def is_stray(self, topic: str, topic_id: str | None, partition: int, broker: int) -> bool:
        """Whether a broker's log is no longer a replica.

        The partition was moved while the broker could not be reached. Valid once all changes were
        read.
        """
        replicas = self._replicas.get(topic, {}).get(str(partition))
        same = self._topic_ids.get(topic) == topic_id
        return replicas is not None and same and broker not in replicas

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """The last id of each topic so far."""
        return {
            name: topic_id for name, topic_id in self._topic_ids.items() if topic_id is not None
        }

    def _topic(self, topic: str, value: dict[str, Any], change: Change) -> Row:
        if value and self.has_topic_ids:
            self._topic_ids[topic] = value.get("topic_id")
        elif value and change.version == 0:
            self._topic_ids[topic] = made_topic_id(topic, change.zxid)
        if value:
            self._replicas[topic] = value.get("partitions", {})
        replicas = json.dumps(self._replicas.get(topic)) if value else None
        return {"topic": topic, "topic_id": self._topic_ids.get(topic), "replicas": replicas}

    def _state(self, topic: str, partition: int, value: dict[str, Any]) -> Row:
        replicas = self._replicas.get(topic, {}).get(str(partition))
        isr = value.get("isr")
        return {
            "topic": topic,
            "topic_id": self._topic_ids.get(topic),
            "partition": partition,
            "leader": value.get("leader"),
            "leader_epoch": value.get("leader_epoch"),
            "controller_epoch": value.get("controller_epoch"),
            "isr": None if isr is None else json.dumps(isr),
            "replicas": None if replicas is None else json.dumps(replicas),
        }


def _value(data: bytes | None) -> dict[str, Any]:
    """A znode's JSON object; empty when it holds none."""
    try:
        value = json.loads(data or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
