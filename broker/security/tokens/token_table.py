"""The table of delegation tokens (KIP-48, KIP-373), and the rules of their visibility."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from urteil.broker.security.principals import USER, Principal
from urteil.broker.security.sasl.scram import Credential, UserCredential, credential

NO_TIME = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token. Times in ms since 1970. `requester` created it, possibly for another owner."""

    id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    max_ms: int
    expires_ms: int

    def is_over(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def may_renew(self, principal: Principal) -> bool:
        return principal == self.owner or principal in self.renewers

    def is_of(self, principal: Principal) -> bool:
        """Whether the principal is the token's owner, requester or renewer."""
        return principal == self.requester or self.may_renew(principal)


@dataclass(slots=True)
class _Entry:
    token: Token
    credentials: dict[str, Credential] = field(default_factory=dict)


class TokenTable:
    """All tokens. The password of a token is its HMAC-SHA512 under the secret that all brokers
    share; without a secret, tokens are disabled."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._entries: dict[str, _Entry] = {}
        self._ids: dict[bytes, str] = {}

    @property
    def is_enabled(self) -> bool:
        return bool(self._secret)

    def __iter__(self) -> Iterator[Token]:
        return iter([entry.token for entry in self._entries.values()])

    def hmac(self, token_id: str) -> bytes:
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def put(self, token: Token) -> None:
        entry = self._entries.setdefault(token.id, _Entry(token))
        entry.token = token
        self._ids[self.hmac(token.id)] = token.id

    def remove(self, token_id: str) -> None:
        if self._entries.pop(token_id, None) is not None:
            del self._ids[self.hmac(token_id)]

    def by_hmac(self, password: bytes) -> Token | None:
        token_id = self._ids.get(password)
        return None if token_id is None else self._entries[token_id].token

    def find(self, mechanism: str, token_id: str) -> UserCredential | None:
        """Return the credential for SCRAM with `tokenauth=true`: user and password are the token's
        id and HMAC."""
        entry = self._entries.get(token_id)
        if entry is None:
            return None
        known = entry.credentials.get(mechanism)
        if known is None:
            password = base64.b64encode(self.hmac(token_id)).decode()
            known = entry.credentials[mechanism] = credential(mechanism, password)
        owner = Principal(USER, entry.token.owner.name, token_authenticated=True)
        return UserCredential(known, owner, entry.token.expires_ms)

    def visible_tokens(
        self,
        asker: Principal,
        owners: Collection[Principal] | None,
        may_describe: Callable[[Token], bool],
    ) -> list[Token]:
        """Return the tokens of `owners` (None: all) that the requester may see: its own, and those
        that `may_describe` allows."""
        return [
            token
            for token in self
            if (owners is None or any(map(token.is_of, owners)))
            and (token.is_of(asker) or may_describe(token))
        ]
