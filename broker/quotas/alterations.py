"""DescribeClientQuotas and AlterClientQuotas (`ZkAdminManager`), on any broker."""

from __future__ import annotations

import asyncio
import ipaddress
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from urteil.broker.config.incremental_changes import RejectedChange
from urteil.broker.quotas.quota_table import CLIENT, IP, OF_CLIENTS, USER, Entity, Quota
from urteil.broker.quotas.stored_quotas import QuotaConfigs
from urteil.broker.security.sanitized_names import sanitize
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.zookeeper.session_types import is_node_name

EXACT, DEFAULT, ANY = 0, 1, 2
"""How a component of a filter matches."""

WHOLE = {Quota.PRODUCE: ("LONG", 64), Quota.FETCH: ("LONG", 64), Quota.CONNECTION: ("INT", 32)}
"""Quotas that are integers, with type and width in bits; others are fractions."""

EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Component:
    """A component of a filter."""

    type: str
    how: int
    name: str | None

    def fits(self, entity: Entity) -> bool:
        if not entity.has_type(self.type):
            return False
        return self.how == ANY or entity.name(self.type) == self.requested_name

    @property
    def requested_name(self) -> str | None:
        return None if self.how == DEFAULT else self.name


def check_filter(components: Sequence[Component]) -> None:
    """Raise RejectedChange for an invalid filter."""
    seen: list[str] = []
    for component in components:
        if component.type in seen:
            what = "client" if component.type == CLIENT else component.type
            raise _invalid(f"Duplicate {what} filter component entity type")
        if not component.type:
            raise _invalid("Unexpected empty filter component entity type")
        if component.type not in (USER, CLIENT, IP):
            why = f"Custom entity type '{component.type}' not supported"
            raise RejectedChange(ErrorCode.UNSUPPORTED_VERSION, why)
        seen.append(component.type)
    if IP in seen and len(seen) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component."
        )


class QuotaAdmin:
    """Applies one change at a time, changes of credentials included, so that none overwrites
    another."""

    def __init__(self, configs: QuotaConfigs) -> None:
        self._configs = configs

    async def describe(
        self, components: Sequence[Component], *, strict: bool
    ) -> dict[Entity, dict[Quota, float]]:
        """Return matching quotas. `strict` skips entities with other components.

        Raises RejectedChange.
        """
        check_filter(components)
        _check_names(
            component.requested_name
            for component in components
            if _reads_exactly(components, strict=strict)
        )
        about = {component.type for component in components}
        described = {}
        for entity, settings in (await self._configs.read_all()).items():
            types = {type for type, _ in entity.components}
            if about and (IP in about) != (IP in types):
                continue
            if not all(component.fits(entity) for component in components) or (
                strict and types != about
            ):
                continue
            kinds = (Quota.CONNECTION,) if entity.has_type(IP) else OF_CLIENTS
            quotas = {kind: float(settings[kind]) for kind in kinds if kind in settings}
            if quotas:
                described[entity] = quotas
        return described

    async def alter(
        self, entity: Entity, changes: Mapping[str, float | None], *, validate_only: bool
    ) -> None:
        """Set quotas, and remove those that are None. Raises RejectedChange."""
        await check_entity(entity)
        _check_names(name for _, name in entity.components)
        kinds = (Quota.CONNECTION,) if entity.has_type(IP) else OF_CLIENTS
        async with self._configs.turn:
            settings = await self._configs.read(entity)
            for key, value in changes.items():
                if value is None:
                    settings.pop(key, None)
                elif key not in kinds:
                    raise _invalid(f"Invalid configuration key {key}")
                else:
                    settings[key] = _encode_value(Quota(key), value)
            if not validate_only:
                await self._configs.write(entity, settings)


def _reads_exactly(components: Sequence[Component], *, strict: bool) -> bool:
    """Whether Apache Kafka looks up one entity, instead of a scan over all."""
    if not components or any(component.how == ANY for component in components):
        return False
    return strict or len(components) > 1 or components[0].type == IP


def _check_names(names: Iterable[str | None]) -> None:
    """Raise RejectedChange for names that no ZooKeeper node can have."""
    if not all(name is None or is_node_name(sanitize(name)) for name in names):
        raise RejectedChange(ErrorCode.UNKNOWN_SERVER_ERROR, None)


async def check_entity(entity: Entity) -> None:
    """Raise RejectedChange for an invalid entity. May wait for the name server."""
    if not entity.components:
        raise _invalid("Invalid empty client quota entity")
    for type, name in entity.components:
        if type not in (USER, CLIENT, IP):
            raise _invalid(f"Unhandled client quota entity type: {type}")
        if name == "":
            raise _invalid(f"Empty {type} not supported")
    if entity.has_type(IP):
        if len(entity.components) > 1:
            raise _invalid(
                "Invalid quota entity combination, IP entity should not be used with user/client "
                "ID entity."
            )
        name = entity.name(IP)
        if name is not None and not await _is_address(name):
            raise _invalid(f"{sanitize(name)} is not a valid IP or resolvable host.")


async def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
        return True
    except ValueError:
        pass
    try:
        await asyncio.get_running_loop().getaddrinfo(name, None)
    except (OSError, UnicodeError):  # UnicodeError: an empty or too long label
        return False
    return True


def _encode_value(quota: Quota, value: float) -> str:
    if quota not in WHOLE:
        return double_text(value)
    kind, bits = WHOLE[quota]
    integer = _to_integer(value + EPSILON, bits)
    if abs(integer - value) > EPSILON:
        raise _invalid(f"Configuration {quota} must be a {kind} value")
    return str(integer)


def _to_integer(value: float, bits: int) -> int:
    """Convert to an integer as Java does: NaN becomes 0, and a value out of range the nearest
    bound."""
    if math.isnan(value):
        return 0
    limit = 2 ** (bits - 1)
    return int(min(max(value, -limit), limit - 1))


def double_text(value: float) -> str:
    """Format a double as Java does (`Double.toString`), because other brokers read it from
    ZooKeeper."""
    if not math.isfinite(value):
        return repr(value).replace("nan", "NaN").replace("inf", "Infinity")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f")
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{Decimal(repr(value)).adjusted()}"


def _invalid(why: str) -> RejectedChange:
    return RejectedChange(ErrorCode.INVALID_REQUEST, why)
