"""DescribeUserScramCredentials and AlterUserScramCredentials (`ZkAdminManager`, KIP-554)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from urteil.broker.base.offload import run_pipelined, yield_items
from urteil.broker.security.sanitized_names import desanitize, sanitize
from urteil.broker.security.sasl.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    Credential,
    credential_of_salted,
)
from urteil.broker.security.sasl.scram_users import credentials_in
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.zookeeper.entity_configs import USERS, EntityConfigs
from urteil.broker.zookeeper.session_types import is_node_name

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""`ScramMechanism.type` of the protocol."""

LISTED_FROM = 20
"""So many users are first looked up in the list of all."""

EMPTY_NAME = "Username must not be empty"
NO_NODE = "ZooKeeper has no node of that name"
NO_KEY = "A salted password is not empty"


@dataclass(frozen=True, slots=True)
class Upsertion:
    """A password that the client has salted; None removes the credential."""

    user: str
    mechanism: int
    iterations: int = 0
    salt: bytes = b""
    salted: bytes | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one user's changes. Apache Kafka sends an empty message on success; librdkafka
    prints `(null)` for none."""

    user: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@dataclass(frozen=True, slots=True)
class Described:
    """A user's credentials by mechanism, or the error."""

    user: str
    credentials: Mapping[int, Credential]
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class ScramAdmin:
    """Applies one change at a time, changes of quotas included, so that none overwrites another."""

    def __init__(self, configs: EntityConfigs) -> None:
        self._configs = configs

    async def describe(self, users: Sequence[str] | None) -> list[Described]:
        """Return the credentials of the named users, or of all (None or empty)."""
        if not users:
            names = [desanitize(node) for node in await self._configs.entities(USERS)]
            described = await run_pipelined(self._describe, names)
            return [user for user in described if user.credentials]
        results = {
            name: _user_error(name, times)
            async for name, times in yield_items(Counter(users).items())
        }
        names = [name for name, error in results.items() if error is None]
        if len(names) >= LISTED_FROM:
            existing = set(await self._configs.entities(USERS))
            names = [name async for name in yield_items(names) if sanitize(name) in existing]
        for user in await run_pipelined(self._describe, names):
            if user.credentials:
                results[user.user] = user
        return [user or _unknown_user(name) async for name, user in yield_items(results.items())]

    async def _describe(self, name: str) -> Described:
        settings = await self._configs.read_or_empty(USERS, sanitize(name))
        known = credentials_in(name, settings)
        return Described(
            name, {kind: known[text] for kind, text in MECHANISMS.items() if text in known}
        )

    async def alter(self, changes: Sequence[Upsertion]) -> list[Outcome]:
        """Apply all changes of a user or none."""
        async with self._configs.turn:
            by_user: dict[str, list[Upsertion]] = {}
            async for change in yield_items(changes):
                by_user.setdefault(change.user, []).append(change)
            refusals = {}
            has_no_node = has_no_key = False
            async for user, user_changes in yield_items(by_user.items()):
                refusals[user] = refusal = _refusal(user, user_changes)
                if refusal is None:
                    has_no_node = has_no_node or not is_node_name(sanitize(user))
                    has_no_key = has_no_key or any(
                        user_change.salted == b"" for user_change in user_changes
                    )
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            if has_no_node:  # an error of ZooKeeper fails all
                return [Outcome(user, error, NO_NODE) async for user in yield_items(by_user)]
            users = yield_items(by_user)
            if has_no_key:  # Java has no such key, so no credential is created
                return [refusals[user] or Outcome(user, error, NO_KEY) async for user in users]
            return [
                refusals[user] or await self._alter(user, by_user[user]) async for user in users
            ]

    async def _alter(self, user: str, changes: Sequence[Upsertion]) -> Outcome:
        node = sanitize(user)
        settings = dict(await self._configs.read_or_empty(USERS, node))
        for change in changes:
            mechanism = MECHANISMS[change.mechanism]
            if change.salted is not None:
                made = credential_of_salted(
                    mechanism, change.salted, change.salt, change.iterations
                )
                settings[mechanism] = made.text()
            elif settings.pop(mechanism, None) is None:
                why = "Attempt to delete a user credential that does not exist"
                return Outcome(user, ErrorCode.RESOURCE_NOT_FOUND, why)
        await self._configs.write(USERS, node, settings)
        return Outcome(user)


def _user_error(name: str, times: int) -> Described | None:
    """The error of a named user that needs no reading."""
    if not name:
        return Described(name, {}, ErrorCode.RESOURCE_NOT_FOUND, EMPTY_NAME)
    if times > 1:
        why = "Cannot describe SCRAM credentials for the same user twice in a single request: "
        return Described(name, {}, ErrorCode.DUPLICATE_RESOURCE, why + name)
    if not is_node_name(sanitize(name)):
        return Described(name, {}, ErrorCode.UNKNOWN_SERVER_ERROR, NO_NODE)
    return None


def _unknown_user(name: str) -> Described:
    why = f"Attempt to describe a user credential that does not exist: {name}"
    return Described(name, {}, ErrorCode.RESOURCE_NOT_FOUND, why)


def _refusal(user: str, changes: Sequence[Upsertion]) -> Outcome | None:
    """The error of the changes by themselves; the last one of several."""
    wrong = [change for change in map(_check_upsertion, changes) if change is not None]
    if wrong:
        return wrong[-1]
    if max(Counter(change.mechanism for change in changes).values()) > 1:
        why = "A user credential cannot be altered twice in the same request"
        return Outcome(user, ErrorCode.DUPLICATE_RESOURCE, why)
    return None


def _check_upsertion(change: Upsertion) -> Outcome | None:
    bad = ErrorCode.UNACCEPTABLE_CREDENTIAL
    if not change.user:
        return Outcome(change.user, bad, EMPTY_NAME)
    if change.mechanism not in MECHANISMS:
        why = "Unknown SCRAM mechanism"
        return Outcome(change.user, ErrorCode.UNSUPPORTED_SASL_MECHANISM, why)
    if change.salted is not None and change.iterations < MIN_ITERATIONS:
        return Outcome(change.user, bad, "Too few iterations")
    if change.salted is not None and change.iterations > MAX_ITERATIONS:
        return Outcome(change.user, bad, "Too many iterations")
    return None
