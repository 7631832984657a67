"""The quotas of users, client ids and pairs of them, and their precedence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

DEFAULT = None
"""The name of the default entity, for all without a quota of their own."""


class Quota(StrEnum):
    """A kind of quota, by its name in ZooKeeper."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"
    CONNECTION = "connection_creation_rate"


OF_CLIENTS = (Quota.PRODUCE, Quota.FETCH, Quota.REQUEST, Quota.MUTATION)


@dataclass(frozen=True, slots=True)
class Entity:
    """The subject of a quota: pairs of a type (`user`, `client-id`, `ip`) and a name, where None is
    the default of the type."""

    components: tuple[tuple[str, str | None], ...]

    def name(self, type: str) -> str | None:
        """Return the name of a type. Raises KeyError if the entity lacks the type."""
        return dict(self.components)[type]

    def has_type(self, type: str) -> bool:
        return any(component == type for component, _ in self.components)


USER, CLIENT, IP = "user", "client-id", "ip"


def entity(**components: str | None) -> Entity:
    """`entity(user="a", client_id=None)`."""
    return Entity(tuple((type.replace("_", "-"), name) for type, name in components.items()))


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, with the user and client id that share it, if any."""

    value: float
    user: str | None
    client_id: str | None


class QuotaTable:
    """All quotas. `is_limited` says whether a kind has any quota, `limits_clients` whether any
    client quota exists, so that unlimited clusters skip all lookups."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, dict[Quota, float]] = {}
        self._limited: frozenset[Quota] = frozenset()
        self.limits_clients = False

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[Quota, float]]]:
        return iter(self._quotas.items())

    def put(self, entity: Entity, quotas: Mapping[Quota, float]) -> None:
        """Replace all quotas of an entity; none remove it."""
        if quotas:
            self._quotas[entity] = dict(quotas)
        else:
            self._quotas.pop(entity, None)
        self._limited = frozenset(kind for quota in self._quotas.values() for kind in quota)
        self.limits_clients = not self._limited.isdisjoint(OF_CLIENTS)

    def is_limited(self, quota: Quota) -> bool:
        return quota in self._limited

    def of_client(self, quota: Quota, user: str, client_id: str) -> Limit | None:
        """Return the first existing limit, in the order of KIP-55."""
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
