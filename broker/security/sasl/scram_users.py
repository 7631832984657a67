"""SCRAM credentials of users: loaded from `/config/users` before the broker serves requests, then
kept up to date (`UserConfigHandler`, `CredentialProvider`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from urteil.broker.security.sanitized_names import desanitize
from urteil.broker.security.sasl.scram import (
    HASHES,
    Credential,
    Find,
    UserCredential,
    parse_credential,
    user_of,
)
from urteil.broker.zookeeper.entity_configs import USERS, EntityConfigs

log = logging.getLogger("security")

FindToken = Callable[[str, str], UserCredential | None]
"""Finds the credential of a delegation token by mechanism and token id."""


class ScramUsers:
    """Finds credentials. The owner of delegation tokens may set `find_token`."""

    def __init__(self) -> None:
        self._users: dict[str, Mapping[str, Credential]] = {}
        self.find_token: FindToken = lambda *_: None

    async def load(self, configs: EntityConfigs) -> None:
        configs.on_change(self._apply_change, USERS)
        names = await configs.entities(USERS)
        settings_by_name = await asyncio.gather(
            *(configs.read_or_empty(USERS, name) for name in names)
        )
        for name, settings in zip(names, settings_by_name, strict=True):
            self._apply_change(name, settings)

    def lookup(self, mechanism: str) -> Find:
        """Return the lookup of one mechanism."""

        def find(name: str, by_token: bool) -> UserCredential | None:
            if by_token:
                return self.find_token(mechanism, name)
            own = self._users.get(name, {}).get(mechanism)
            return None if own is None else UserCredential(own, user_of(name))

        return find

    def _apply_change(self, entity: str, settings: Mapping[str, str]) -> None:
        if "/" in entity:  # settings of a client id of this user
            return
        self._users[desanitize(entity)] = credentials_in(entity, settings)


def credentials_in(entity: str, settings: Mapping[str, str]) -> dict[str, Credential]:
    """Return credentials by mechanism; log and skip malformed ones."""
    credentials = {}
    for mechanism in HASHES:
        if mechanism in settings:
            try:
                credentials[mechanism] = parse_credential(settings[mechanism])
            except ValueError as error:
                log.error("%s of user %s is ignored: %s", mechanism, entity, error)
    return credentials
