"""Which limit is whose: the quotas of users, client ids and pairs of them, most special first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

DEFAULT = None
"""The name of the entity that stands for all that have no quota of their own."""


class Quota(StrEnum):
    """What is limited, by its name in ZooKeeper."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"
    CONNECTION = "connection_creation_rate"


OF_CLIENTS = (Quota.PRODUCE, Quota.FETCH, Quota.REQUEST, Quota.MUTATION)


@dataclass(frozen=True, slots=True)
class Entity:
    """Whom a quota is for: pairs of a type (`user`, `client-id`, `ip`) and a name, None being
    the default of that type."""

    parts: tuple[tuple[str, str | None], ...]

    def name(self, type: str) -> str | None:
        """Raises KeyError where it has no part of that type."""
        return dict(self.parts)[type]

    def has(self, type: str) -> bool:
        return any(one == type for one, _ in self.parts)


USER, CLIENT, IP = "user", "client-id", "ip"


def entity(**parts: str | None) -> Entity:
    """`entity(user="a", client_id=None)`."""
    return Entity(tuple((type.replace("_", "-"), name) for type, name in parts.items()))


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, and who shares it: the user and the client id that it counts by, if it does."""

    value: float
    user: str | None
    client_id: str | None


class QuotaTable:
    """All quotas. `is_limited` tells whether there is any of a kind, `limits_clients` of any kind
    for clients, so that nobody looks else."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, dict[Quota, float]] = {}
        self._limited: frozenset[Quota] = frozenset()
        self.limits_clients = False

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[Quota, float]]]:
        return iter(self._quotas.items())

    def put(self, entity: Entity, quotas: Mapping[Quota, float]) -> None:
        """All quotas of an entity; none remove it."""
        if quotas:
            self._quotas[entity] = dict(quotas)
        else:
            self._quotas.pop(entity, None)
        self._limited = frozenset(kind for one in self._quotas.values() for kind in one)
        self.limits_clients = not self._limited.isdisjoint(OF_CLIENTS)

    def is_limited(self, quota: Quota) -> bool:
        return quota in self._limited

    def of_client(self, quota: Quota, user: str, client_id: str) -> Limit | None:
        """The first that there is, in the order of KIP-55."""
        for owner in (user, DEFAULT):
            for client in (client_id, DEFAULT):
                value = self._value(quota, entity(user=owner, client_id=client))
                if value is not None:
                    return Limit(value, user, client_id)
            value = self._value(quota, entity(user=owner))
            if value is not None:
                return Limit(value, user, None)
        for client in (client_id, DEFAULT):
            value = self._value(quota, entity(client_id=client))
            if value is not None:
                return Limit(value, None, client_id)
        return None

    def of_address(self, address: str) -> float | None:
        for name in (address, DEFAULT):
            value = self._value(Quota.CONNECTION, entity(ip=name))
            if value is not None:
                return value
        return None

    def _value(self, quota: Quota, entity: Entity) -> float | None:
        return self._quotas.get(entity, {}).get(quota)
