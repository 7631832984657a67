"""ACLs in ZooKeeper, in Apache Kafka's layout (`kafka.zk.ZkAclStore`).

`/kafka-acl/Topic/orders` has the ACLs of one name (or of `*`), `/kafka-acl-extended/prefixed/...`
those of a prefix. Each has a path for change notifications.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from urteil.broker.security.acls.acl_model import (
    RESOURCE_TYPES,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from urteil.broker.security.acls.acl_table import NO_VERSION, VersionedAcls
from urteil.broker.security.principals import parse_principal
from urteil.broker.zookeeper.session import (
    LOST,
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    Session,
)
from urteil.broker.zookeeper.session_types import is_node_name

CHANGE_PREFIX = "acl_changes_"


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of one pattern type: its ACLs and its change notifications."""

    kind: PatternType
    path: str
    changes: str


PLACES = (
    Place(PatternType.LITERAL, "/kafka-acl", "/kafka-acl-changes"),
    Place(PatternType.PREFIXED, "/kafka-acl-extended/prefixed", "/kafka-acl-extended-changes"),
)
_BY_KIND = {place.kind: place for place in PLACES}
_TYPES = {type.title: type for type in RESOURCE_TYPES}


def place_of(pattern: Pattern) -> Place:
    return _BY_KIND[pattern.kind]


def acl_path(pattern: Pattern) -> str:
    return f"{place_of(pattern).path}/{pattern.type.title}/{pattern.name}"


def encode_acls(entries: Iterable[Entry]) -> bytes:
    acls = [
        {
            "principal": entry.principal,
            "permissionType": entry.permission.title,
            "host": entry.host,
            "operation": entry.operation.title,
        }
        for entry in entries
    ]
    return _dump({"acls": acls, "version": 1})


def decode_acls(data: bytes) -> tuple[Entry, ...]:
    """Raises ValueError, KeyError or TypeError for malformed data, which people may have written by
    hand."""
    if not data:
        return ()
    value = json.loads(data)
    if value["version"] != 1:
        raise ValueError(f"ACLs of version {value['version']}")
    return tuple(dict.fromkeys(_entry(acl) for acl in value["acls"]))


def _entry(value: dict[str, str]) -> Entry:
    operation = {operation.title: operation for operation in Operation}[value["operation"]]
    permission = {permission.title: permission for permission in Permission}[
        value["permissionType"]
    ]
    return Entry(str(parse_principal(value["principal"])), value["host"], operation, permission)


def encode_change(pattern: Pattern) -> bytes:
    if pattern.kind is PatternType.LITERAL:
        return f"{pattern.type.name}:{pattern.name}".encode()
    return _dump(
        {
            "version": 1,
            "resourceType": pattern.type.name,
            "name": pattern.name,
            "patternType": pattern.kind.name,
        }
    )


def decode_change(data: bytes, kind: PatternType) -> Pattern:
    """Decode a change notification; types are `TOPIC` from newer brokers, `Topic` from older ones.
    Raises ValueError and KeyError."""
    if kind is PatternType.LITERAL:
        written, colon, name = data.decode().partition(":")
        if not colon:
            raise ValueError(f"{written} names no resource")
        return Pattern(_type(written), name)
    value = json.loads(data)
    return Pattern(_type(value["resourceType"]), value["name"], PatternType[value["patternType"]])


def _type(text: str) -> ResourceType:
    return _TYPES[text] if text in _TYPES else ResourceType[text.upper()]


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class AclStore:
    """Reads and writes ACLs. A write applies to one version of the node."""

    def __init__(self, zk: Session) -> None:
        self._zk = zk

    async def prepare(self) -> None:
        """Create the paths (`KafkaZkClient.createAclPaths`)."""
        for place in PLACES:
            for type in RESOURCE_TYPES:
                await self._zk.ensure(f"{place.path}/{type.title}")
            await self._zk.ensure(place.changes)

    async def patterns(self) -> list[Pattern]:
        """Return all patterns with ACLs."""
        patterns: list[Pattern] = []
        for place in PLACES:
            for title in await self._zk.children(place.path):
                type = _TYPES.get(title)
                if type is not None:
                    names = await self._zk.children(f"{place.path}/{title}")
                    patterns.extend(Pattern(type, name, place.kind) for name in names)
        return patterns

    async def read(self, pattern: Pattern) -> VersionedAcls:
        """Read the ACLs of a pattern. Raises ValueError with the node if it is malformed or cannot
        exist."""
        path = acl_path(pattern)
        if not is_node_name(pattern.name):
            raise ValueError(f"ZooKeeper has no node {path}")
        try:
            data, stat = await self._zk.get(path)
        except NoNodeError:
            return VersionedAcls()
        try:
            return VersionedAcls(decode_acls(data), stat.version)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} holds no ACLs: {error!r}") from None

    async def write(
        self, pattern: Pattern, entries: tuple[Entry, ...], version: int
    ) -> VersionedAcls | None:
        """Replace the ACLs of a version; no entries remove the node. Return None if the node has
        another version, or after a lost connection."""
        path = acl_path(pattern)
        try:
            if not entries:
                return await self._remove(path, version)
            data = encode_acls(entries)
            if version == NO_VERSION:
                _, stat = await self._zk.create(path, data, make_parents=True)
            else:
                stat = await self._zk.set(path, data, version)
        except (NoNodeError, NodeExistsError, BadVersionError, *LOST):
            return None
        return VersionedAcls(entries, stat.version)

    async def _remove(self, path: str, version: int) -> VersionedAcls:
        with contextlib.suppress(NoNodeError):
            await self._zk.delete(path, version)
        return VersionedAcls()
