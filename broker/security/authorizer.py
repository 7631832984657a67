"""The authorizer: decides by ACLs, and writes the audit log
(`kafka.security.authorizer.AclAuthorizer`)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from urteil.broker.security.acls.acl_model import (
    IMPLYING,
    SUPPORTED,
    WILDCARD,
    Entry,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from urteil.broker.security.acls.acl_table import AclTable
from urteil.broker.security.principals import Principal, parse_principal
from urteil.broker.wire.messages import REQUESTS

SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"
MAX_REMEMBERED = 20_000
TRACE = 5

audit: Final = logging.getLogger("kafka.authorizer.logger")
"""The audit log: denials at INFO, allowed requests at DEBUG, implicit checks at TRACE."""


@dataclass(frozen=True, slots=True)
class Requester:
    """The origin of a request: principal, host and API."""

    principal: Principal
    host: str
    api_key: int


def parse_super_users(text: str | None) -> frozenset[Principal]:
    """Parse `User:alice;User:bob`. Raises ValueError."""
    try:
        return frozenset(
            parse_principal(principal.strip()) for principal in (text or "").split(";") if principal
        )
    except ValueError as error:
        raise ValueError(f"Invalid value {text} for configuration {SUPER_USERS}: {error}") from None


def make_authorizer(properties: Mapping[str, str], acls: AclTable) -> Authorizer:
    """Build the authorizer that the broker's properties describe. Raises ValueError."""
    everyone = properties.get(ALLOW_EVERYONE, "").strip().lower() == "true"
    super_users = parse_super_users(properties.get(SUPER_USERS))
    return Authorizer(acls, super_users, allow_everyone=everyone)


class Authorizer:
    """Decides by ACLs; caches decisions until an ACL changes."""

    def __init__(
        self, acls: AclTable, super_users: Collection[Principal], *, allow_everyone: bool
    ) -> None:
        """`allow_everyone` where no ACL speaks of a resource."""
        self.acls = acls
        self._super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone
        self._remembered: dict[tuple[Principal, str, Operation, ResourceType, str], bool] = {}
        self._revision = acls.revision

    def authorize(
        self,
        requester: Requester,
        operation: Operation,
        type: ResourceType,
        name: str,
        *,
        count: int = 1,
        log_denied: bool = True,
        log_allowed: bool = True,
    ) -> bool:
        """Whether the operation is allowed. `count`: how often the request names the resource, for
        the log."""
        allowed = self._cached_decision(requester, operation, type, name)
        level = _level(allowed, log_denied=log_denied, log_allowed=log_allowed)
        if audit.isEnabledFor(level):
            resource = f"{type.title}:LITERAL:{name}"
            _log(level, requester, operation, resource, allowed=allowed, count=count)
        return allowed

    def operations(self, requester: Requester, type: ResourceType, name: str) -> int:
        """Return the bits of all allowed operations on a resource (KIP-430)."""
        return sum(
            1 << operation
            for operation in SUPPORTED[type]
            if self.authorize(requester, operation, type, name, log_denied=False, log_allowed=False)
        )

    def authorize_any(self, requester: Requester, operation: Operation, type: ResourceType) -> bool:
        """Whether the operation is allowed on any resource of the type (KIP-679)."""
        if requester.principal in self._super_users:
            return True
        allowed = self._any_allowed(requester, operation, type)
        level = logging.DEBUG if allowed else logging.INFO
        if audit.isEnabledFor(level):
            resource = f"{type.title}:UNKNOWN:NONE"
            _log(level, requester, operation, resource, allowed=allowed, count=0)
        return allowed

    def _cached_decision(
        self, requester: Requester, operation: Operation, type: ResourceType, name: str
    ) -> bool:
        if self._revision != self.acls.revision:
            self._remembered.clear()
            self._revision = self.acls.revision
        key = (requester.principal, requester.host, operation, type, name)
        known = self._remembered.get(key)
        if known is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[key] = self._decide(*key)
        return known

    def _decide(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        type: ResourceType,
        name: str,
    ) -> bool:
        if principal in self._super_users:
            return True
        entries = self.acls.matching_entries(type, name)
        if not entries:
            return self._allow_everyone
        own_entries = [entry for entry in entries if entry.concerns(str(principal), host)]
        if _has_entry(own_entries, Permission.DENY, (operation,)):
            return False
        return _has_entry(own_entries, Permission.ALLOW, IMPLYING.get(operation, (operation,)))

    def _any_allowed(self, requester: Requester, operation: Operation, type: ResourceType) -> bool:
        def names(kind: PatternType, permission: Permission) -> Collection[str]:
            who = (str(requester.principal), requester.host)
            return self.acls.names(type, kind, permission, operation, *who)

        denied = names(PatternType.LITERAL, Permission.DENY)
        if WILDCARD in denied:
            return False
        if self._allow_everyone:
            return True
        denied_prefixes = names(PatternType.PREFIXED, Permission.DENY)
        for prefix in names(PatternType.PREFIXED, Permission.ALLOW):
            if not _has_prefix(prefix, denied_prefixes):
                return True
        return any(
            literal == WILDCARD
            or (literal not in denied and not _has_prefix(literal, denied_prefixes))
            for literal in names(PatternType.LITERAL, Permission.ALLOW)
        )


def _has_entry(
    entries: Collection[Entry], permission: Permission, operations: Collection[Operation]
) -> bool:
    return any(
        entry.permission is permission
        and (entry.operation is Operation.ALL or entry.operation in operations)
        for entry in entries
    )


def _has_prefix(name: str, prefixes: Collection[str]) -> bool:
    return any(name.startswith(prefix) for prefix in prefixes)


def _level(allowed: bool, *, log_denied: bool, log_allowed: bool) -> int:
    if allowed:
        return logging.DEBUG if log_allowed else TRACE
    return logging.INFO if log_denied else TRACE


def _log(
    level: int,
    requester: Requester,
    operation: Operation,
    resource: str,
    *,
    allowed: bool,
    count: int,
) -> None:
    audit.log(
        level,
        "Principal = %s is %s Operation = %s from host = %s on resource = %s for request = %s "
        "with resourceRefCount = %d",
        requester.principal,
        "Allowed" if allowed else "Denied",
        operation.title,
        requester.host,
        resource,
        REQUESTS[requester.api_key].__name__.removesuffix("Request"),
        count,
    )
