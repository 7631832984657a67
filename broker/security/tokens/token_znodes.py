"""Delegation tokens in ZooKeeper, in Apache Kafka's layout (`DelegationTokenManagerZk`).

`/delegation_token/tokens/ID` has all fields of a token but its HMAC;
`/delegation_token/token_changes` has the change notifications.
"""

from __future__ import annotations

import contextlib
import json
import operator

from urteil.broker.security.principals import parse_principal
from urteil.broker.security.sanitized_names import desanitize, sanitize
from urteil.broker.security.tokens.token_table import Token
from urteil.broker.zookeeper.plain_writes import put
from urteil.broker.zookeeper.session import LOST, NoNodeError, Session

TOKENS = "/delegation_token/tokens"
CHANGES = "/delegation_token/token_changes"
CHANGE_PREFIX = "token_change_"
VERSION = REQUESTER_SINCE = 3


def token_path(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def encode_token(token: Token) -> bytes:
    value = {  # in the order of Apache Kafka's hash map
        "issueTimestamp": token.issued_ms,
        "renewers": [sanitize(str(renewer)) for renewer in token.renewers],
        "tokenRequester": sanitize(str(token.requester)),
        "tokenId": token.id,
        "owner": sanitize(str(token.owner)),
        "expiryTimestamp": token.expires_ms,
        "maxTimestamp": token.max_ms,
        "version": VERSION,
    }
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode_token(data: bytes) -> Token:
    """Raises ValueError, KeyError or TypeError for malformed data, which people may have written by
    hand."""
    value = json.loads(data)
    version = operator.index(value["version"])
    if not 0 < version <= VERSION:
        raise ValueError(f"a token of version {version}")
    owner = value["owner"]
    return Token(
        id=value["tokenId"],
        owner=parse_principal(desanitize(owner)),
        requester=parse_principal(
            desanitize(owner if version < REQUESTER_SINCE else value["tokenRequester"])
        ),
        renewers=tuple(parse_principal(desanitize(renewer)) for renewer in value["renewers"]),
        issued_ms=operator.index(value["issueTimestamp"]),
        max_ms=operator.index(value["maxTimestamp"]),
        expires_ms=operator.index(value["expiryTimestamp"]),
    )


class TokenStore:
    """Reads and writes tokens; a write is repeated after a lost connection, because it stores the
    full state."""

    def __init__(self, zk: Session) -> None:
        self._zk = zk

    async def prepare(self) -> None:
        await self._zk.ensure(CHANGES)
        await self._zk.ensure(TOKENS)

    async def ids(self) -> list[str]:
        return sorted(await self._zk.children(TOKENS))

    async def read(self, token_id: str) -> Token | None:
        """Read a token. Raises ValueError with the node if it is malformed."""
        path = token_path(token_id)
        try:
            data, _ = await self._zk.get(path)
        except NoNodeError:
            return None
        try:
            return decode_token(data)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} holds no delegation token: {error!r}") from None

    async def write(self, token: Token) -> None:
        await put(self._zk, token_path(token.id), encode_token(token))

    async def remove(self, token_id: str) -> None:
        while True:
            with contextlib.suppress(*LOST):
                with contextlib.suppress(NoNodeError):
                    await self._zk.delete(token_path(token_id))
                return
