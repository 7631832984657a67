"""The model of ACLs: resources, operations, permissions and filters.

Numbers are the protocol's (`ResourceType`, `PatternType`, `AclOperation`, `AclPermissionType` of
Apache Kafka); titles are the spelling in ZooKeeper and in the audit log (`SecurityUtils`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum

WILDCARD = "*"
EVERYBODY = "User:*"
CLUSTER_NAME = "kafka-cluster"


class _Named(IntEnum):
    @property
    def title(self) -> str:
        """`TRANSACTIONAL_ID` is written `TransactionalId`."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @classmethod
    def _missing_(cls, value: object) -> _Named:
        """Numbers of later protocol versions are UNKNOWN, never an error."""
        return cls(0)


class ResourceType(_Named):
    """The type of a resource."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Named):
    """The type of a pattern; ANY and MATCH occur in filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(_Named):
    """An operation on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Permission(_Named):
    """The effect of an ACL; DENY wins over ALLOW."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


RESOURCE_TYPES = tuple(ResourceType)[2:]
"""The types that a resource can have."""

IMPLYING: Mapping[Operation, tuple[Operation, ...]] = {
    Operation.DESCRIBE: (
        Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER,
    ),
    Operation.DESCRIBE_CONFIGS: (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
}  # fmt: skip
"""The operations that imply an operation, besides itself."""

SUPPORTED: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DELETE,
        Operation.ALTER, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE, Operation.DELETE),
    ResourceType.CLUSTER: (
        Operation.CREATE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE, Operation.ALTER, Operation.DESCRIBE,
    ),
}  # fmt: skip
"""The operations on a resource whose authorized operations clients may request (KIP-430)."""


Allowed = Callable[[Operation, Collection[str]], AbstractSet[str]]
"""Returns those of some topics on which an operation is allowed."""


def allow_everything(_operation: Operation, topics: Collection[str]) -> AbstractSet[str]:
    """Allow all topics: no authorizer is configured."""
    return set(topics)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A resource pattern: one name, all names (`*`), or a prefix."""

    type: ResourceType
    name: str
    kind: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{self.type.title}:{self.kind.name}:{self.name}"

    def covers(self, name: str) -> bool:
        if self.kind is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


@dataclass(frozen=True, slots=True)
class Entry:
    """An ACL entry: principal (`User:alice`), host, operation and permission."""

    principal: str
    host: str
    operation: Operation
    permission: Permission

    def concerns(self, principal: str, host: str) -> bool:
        return self.principal in (principal, EVERYBODY) and self.host in (host, WILDCARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """A filter of ACLs; None matches any name, principal or host (`AclBindingFilter`)."""

    type: ResourceType = ResourceType.ANY
    name: str | None = None
    kind: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def picks_pattern(self, pattern: Pattern) -> bool:
        """Whether the filter matches a pattern; MATCH selects every pattern that covers the
        name."""
        if self.type not in (ResourceType.ANY, pattern.type):
            return False
        if self.kind not in (PatternType.ANY, PatternType.MATCH, pattern.kind):
            return False
        if self.name is None:
            return True
        if self.kind is PatternType.MATCH:
            return pattern.covers(self.name)
        return self.name == pattern.name

    def picks_entry(self, entry: Entry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def named_patterns(self) -> list[Pattern]:
        """The patterns that the filter can match, if it names them."""
        if self.name is None or self.type not in RESOURCE_TYPES:
            return []
        if self.kind is PatternType.ANY:
            kinds: tuple[PatternType, ...] = (PatternType.LITERAL, PatternType.PREFIXED)
        else:
            kinds = (self.kind,)
        return [
            Pattern(self.type, self.name, kind)
            for kind in kinds
            if kind in (PatternType.LITERAL, PatternType.PREFIXED)
        ]
