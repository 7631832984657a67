"""Quotas in ZooKeeper, among the settings of users, clients and addresses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from urteil.broker.quotas.quota_table import CLIENT, IP, USER, Entity, Quota, QuotaTable
from urteil.broker.security.sanitized_names import desanitize, sanitize
from urteil.broker.zookeeper.entity_configs import CLIENTS, IPS, USERS, Callback, EntityConfigs

log = logging.getLogger("quotas")

DEFAULT_NODE = "<default>"
_KINDS = {USERS: USER, CLIENTS: CLIENT, IPS: IP}


def place(entity: Entity) -> tuple[str, str]:
    """Return kind and node name of an entity: `users`, `a/clients/b`."""
    if entity.has_type(IP):
        return IPS, _node(entity.name(IP))
    if not entity.has_type(USER):
        return CLIENTS, _node(entity.name(CLIENT))
    user = _node(entity.name(USER))
    if not entity.has_type(CLIENT):
        return USERS, user
    return USERS, f"{user}/{CLIENTS}/{_node(entity.name(CLIENT))}"


def entity_at(kind: str, node: str) -> Entity:
    """Return the entity of a node (the inverse of `place`). Raises ValueError for another path."""
    first, *rest = node.split("/")
    if not rest:
        return Entity(((_KINDS[kind], _name(first)),))
    if kind != USERS or len(rest) != 2 or rest[0] != CLIENTS:
        raise ValueError(f"/config/{kind}/{node} is nobody's")
    return Entity(((USER, _name(first)), (CLIENT, _name(rest[1]))))


def _node(name: str | None) -> str:
    return DEFAULT_NODE if name is None else sanitize(name)


def _name(node: str) -> str | None:
    return None if node == DEFAULT_NODE else desanitize(node)


def quotas_in(settings: Mapping[str, str]) -> dict[Quota, float]:
    """Return the quotas among settings, which may include credentials. Raises ValueError."""
    return {quota: float(settings[quota]) for quota in Quota if quota in settings}


class QuotaConfigs:
    """Keeps `table` equal to ZooKeeper."""

    def __init__(self, configs: EntityConfigs, table: QuotaTable) -> None:
        self.table = table
        self._configs = configs
        for kind in _KINDS:
            configs.on_change(self._taker(kind), kind)

    @property
    def turn(self) -> asyncio.Lock:
        """A lock for changes of stored quotas."""
        return self._configs.turn

    async def load(self) -> None:
        """Load all quotas. Waits for ZooKeeper."""
        for entity, settings in (await self.read_all()).items():
            self._put(entity, settings)

    async def read_all(self) -> dict[Entity, dict[str, str]]:
        """Return all settings of users, clients and addresses in ZooKeeper."""
        quotas = {}
        for kind in _KINDS:
            for node in await self._nodes(kind):
                quotas[entity_at(kind, node)] = await self._configs.read_or_empty(kind, node)
        return quotas

    async def _nodes(self, kind: str) -> list[str]:
        nodes = await self._configs.entities(kind)
        if kind == USERS:
            for user in list(nodes):
                below = f"{user}/{CLIENTS}"
                names = await self._configs.entities(f"{USERS}/{below}")
                nodes += [f"{below}/{name}" for name in names]
        return nodes

    async def read(self, entity: Entity) -> dict[str, str]:
        return await self._configs.read_or_empty(*place(entity))

    async def write(self, entity: Entity, settings: Mapping[str, str]) -> None:
        """Write settings, apply them here at once, and notify other brokers."""
        await self._configs.write(*place(entity), settings)
        self._put(Entity(tuple(sorted(entity.components, reverse=True))), settings)

    def _taker(self, kind: str) -> Callback:
        return lambda node, settings: self._put(entity_at(kind, node), settings)

    def _put(self, entity: Entity, settings: Mapping[str, str]) -> None:
        try:
            quotas = quotas_in(settings)
        except ValueError as error:
            log.error("quotas of %s are rejected: %s", entity.components, error)
            return
        self.table.put(entity, quotas)
