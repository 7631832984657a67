"""Dynamic settings of this broker: loaded before it serves requests, then kept up to date."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from urteil.broker.config.cross_checks import check_properties
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.reconfiguration import (
    LISTENERS,
    check_names,
    check_value,
    is_password,
    unchangeable,
    validate,
)
from urteil.broker.config.values import ConfigError
from urteil.broker.security.passwords import KEY_FACTORY, PasswordEncoder
from urteil.broker.zookeeper.entity_configs import BROKERS, EVERY_BROKER, EntityConfigs

log = logging.getLogger("config")

NO_SECRET = "Password encoder secret not configured"


class DynamicSettings:
    """Keeps `properties` equal to `/config/brokers` in ZooKeeper (KIP-226).

    Invalid settings, and settings that contradict others, are logged and ignored: the broker keeps
    the values that it has.
    """

    def __init__(self, broker_id: int, properties: LiveProperties, configs: EntityConfigs) -> None:
        self._broker_id = broker_id
        self._properties = properties
        self._configs = configs
        self._check: Callable[[LiveProperties], None] = lambda _: None
        self._on_reload: Callable[[], None] = lambda: None
        configs.on_change(self._apply_change, BROKERS)

    def follow(
        self, check: Callable[[LiveProperties], None], on_reload: Callable[[], None]
    ) -> None:
        """Set the callbacks. `check` raises ConfigError for properties that the broker cannot
        apply; `on_reload` runs after each change by an administrator, even without a new value,
        since files may have changed."""
        self._check, self._on_reload = check, on_reload

    def validate(self, settings: Mapping[str, str], *, per_broker: bool) -> None:
        """Check settings that would replace all settings of this broker, or of all brokers. Raises
        ConfigError."""
        validate(self._properties, settings, per_broker=per_broker)
        layer = "own" if per_broker else "cluster_wide"
        try:
            self._check(LiveProperties(self._properties.merge(**{layer: settings})))
        except ConfigError as error:
            raise unchangeable(str(error)) from None

    async def load(self) -> None:
        """Load the settings from ZooKeeper and apply them.

        Passwords under the old secret are encrypted again with the new one.
        """
        self._apply_change(EVERY_BROKER, await self._configs.read_or_empty(BROKERS, EVERY_BROKER))
        own_entity = str(self._broker_id)
        stored = await self._configs.read_or_empty(BROKERS, own_entity)
        self._apply_change(own_entity, stored)
        known = {name: value for name, value in self._properties.own.items() if is_password(name)}
        if known and _encoder(self._properties, "password.encoder.old.secret"):
            await self._configs.write(BROKERS, own_entity, stored | self.encode(known))

    def entity(self, resource_name: str) -> str:
        """Return the node name in ZooKeeper for a resource name: `1`, or `` for all brokers."""
        return resource_name or EVERY_BROKER

    def decode(self, settings: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
        """Return the settings with decrypted passwords, without invalid ones."""
        return {
            name: plain
            for name, value in settings.items()
            if _is_usable(name, value, per_broker=per_broker)
            and (plain := self._decode(name, value)) is not None
        }

    def encode(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the settings as ZooKeeper stores them. Raises ConfigError."""
        return {name: self._encode(name, value) for name, value in settings.items()}

    def _encode(self, name: str, value: str) -> str:
        if not is_password(name):
            return value
        encoder = _encoder(self._properties, "password.encoder.secret")
        if encoder is None:
            raise ConfigError(NO_SECRET)
        try:
            return encoder.encode(value)
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def _decode(self, name: str, value: str) -> str | None:
        """Return the decrypted value; log a password that cannot be decrypted and return None."""
        if not is_password(name):
            return value
        why = NO_SECRET
        for secret in ("password.encoder.secret", "password.encoder.old.secret"):
            encoder = _encoder(self._properties, secret)
            if encoder is None:
                continue
            try:
                return encoder.decode(value)
            except ValueError as error:
                why = str(error)
        log.error("the password %s cannot be read and is ignored: %s", name, why)
        return None

    def _apply_change(self, entity: str, settings: Mapping[str, str]) -> None:
        if entity not in (EVERY_BROKER, str(self._broker_id)):
            return
        per_broker = entity != EVERY_BROKER
        layer = "own" if per_broker else "cluster_wide"
        usable = self.decode(settings, per_broker=per_broker)
        try:
            merged = LiveProperties(self._properties.merge(**{layer: usable}))
            check_properties(merged)
            self._check(merged)
        except ConfigError as error:
            log.error("settings of broker %s are rejected: %s", entity, error)
            return
        self._properties.replace(**{layer: usable})
        self._on_reload()


def _encoder(properties: LiveProperties, secret: str) -> PasswordEncoder | None:
    """The encoder by `password.encoder.*`; None without a secret."""
    key = properties.value(secret)
    if not key:
        return None
    return PasswordEncoder(
        secret=key,
        key_factory=properties.value("password.encoder.keyfactory.algorithm") or KEY_FACTORY,
        cipher=properties.value("password.encoder.cipher.algorithm"),
        key_bits=properties.value("password.encoder.key.length"),
        iterations=properties.value("password.encoder.iterations"),
    )


def _is_usable(name: str, value: str, *, per_broker: bool) -> bool:
    try:
        check_names([name], per_broker=per_broker)
        check_value(name, value)
        if name in LISTENERS:
            raise ConfigError(f"{name} is read from the file alone")
    except ConfigError as error:
        log.error("a dynamic setting of this broker is ignored: %s", error)
        return False
    return True
