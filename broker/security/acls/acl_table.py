"""The ACL table of a broker: all ACLs of the cluster, and those that apply to a resource."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from urteil.broker.security.acls.acl_model import (
    WILDCARD,
    AclFilter,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)

NO_VERSION = -1


@dataclass(frozen=True, slots=True)
class VersionedAcls:
    """The distinct ACLs of a pattern, and the version of their node (-1: no node)."""

    entries: tuple[Entry, ...] = ()
    version: int = NO_VERSION


class AclTable:
    """ACLs by pattern. `revision` counts the changes."""

    def __init__(self) -> None:
        self.revision = 0
        self._acls: dict[Pattern, VersionedAcls] = {}
        self._prefix_lengths: dict[ResourceType, dict[int, int]] = {}

    def __iter__(self) -> Iterator[tuple[Pattern, VersionedAcls]]:
        return iter(self._acls.items())

    def get(self, pattern: Pattern) -> VersionedAcls | None:
        return self._acls.get(pattern)

    def put(self, pattern: Pattern, acls: VersionedAcls) -> None:
        """Replace the ACLs of a pattern; no entries remove the pattern."""
        known = pattern in self._acls
        if acls.entries:
            self._acls[pattern] = acls
        else:
            self._acls.pop(pattern, None)
        if known is not bool(acls.entries) and pattern.kind is PatternType.PREFIXED:
            self._count_length(pattern, -1 if known else 1)
        self.revision += 1

    def _count_length(self, pattern: Pattern, change: int) -> None:
        lengths = self._prefix_lengths.setdefault(pattern.type, {})
        size = len(pattern.name)
        lengths[size] = lengths.get(size, 0) + change
        if not lengths[size]:
            del lengths[size]

    def matching_entries(self, type: ResourceType, name: str) -> list[Entry]:
        """Yield the ACLs of all patterns that match the resource."""
        patterns = {Pattern(type, WILDCARD): None, Pattern(type, name): None}
        for size in self._prefix_lengths.get(type, ()):
            if size <= len(name):
                patterns[Pattern(type, name[:size], PatternType.PREFIXED)] = None
        entries: list[Entry] = []
        for pattern in patterns:
            acls = self._acls.get(pattern)
            if acls is not None:
                entries.extend(acls.entries)
        return entries

    def picked_entries(self, acl_filter: AclFilter) -> Iterator[tuple[Pattern, list[Entry]]]:
        for pattern, acls in self._acls.items():
            if acl_filter.picks_pattern(pattern):
                entries = [entry for entry in acls.entries if acl_filter.picks_entry(entry)]
                if entries:
                    yield pattern, entries

    def names(
        self,
        type: ResourceType,
        kind: PatternType,
        permission: Permission,
        operation: Operation,
        principal: str,
        host: str,
    ) -> Collection[str]:
        """Return the names of patterns with such an ACL for the principal (or for all
        principals)."""
        return {
            pattern.name
            for pattern, acls in self._acls.items()
            if pattern.type is type
            and pattern.kind is kind
            and any(
                entry.permission is permission
                and entry.operation in (operation, Operation.ALL)
                and entry.concerns(principal, host)
                for entry in acls.entries
            )
        }
