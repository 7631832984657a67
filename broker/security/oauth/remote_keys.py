"""A key set from an http or https server (`RefreshingHttpsJwks`)."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

from urteil.broker.security.oauth.jwks import Keys, check_signature, parse_keys

log = logging.getLogger("security")

TIMEOUT_S = 10.0
MAX_BYTES = 1 << 20
ASK_AGAIN_S = 60.0
"""The least interval between fetches for unknown key ids, which any client can invent."""
MAX_UNKNOWN = 16


class RemoteKeys:
    """Keys that are fetched at the start, every `refresh_s` in a thread, and soon after a token
    with an unknown key id. A failed fetch is retried; the present keys stay valid."""

    def __init__(
        self,
        fetch: Callable[[], str],
        refresh_s: float,
        backoff_s: float,
        max_backoff_s: float,
        time_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises OSError and ValueError when there is no set of keys at first."""
        self._fetch = fetch
        self._refresh_s, self._backoff_s, self._max_backoff_s = refresh_s, backoff_s, max_backoff_s
        self._time_s = time_s
        self._keys: Keys = parse_keys(fetch())
        self._asked_s: dict[str, float] = {}
        self._now = threading.Event()
        self._closed = False
        threading.Thread(target=self._follow, name="jwks", daemon=True).start()

    def verify(self, header: Mapping[str, Any], signed: bytes, signature: bytes) -> None:
        """Raise TokenRefused unless a key of the set (the named one, if the header names one) made
        the signature."""
        named = header.get("kid")
        if named is not None and all(kid != named for kid, _ in self._keys):
            self._ask_for(str(named))
        check_signature(self._keys, header, signed, signature)

    def close(self) -> None:
        """Stop fetching."""
        self._closed = True
        self._now.set()

    def _ask_for(self, kid: str) -> None:
        now_s = self._time_s()
        known = {
            key_id: at_s for key_id, at_s in self._asked_s.items() if now_s - at_s < ASK_AGAIN_S
        }
        if kid not in known and len(known) < MAX_UNKNOWN:
            known[kid] = now_s
            self._now.set()
        self._asked_s = known

    def _follow(self) -> None:
        wait_s, backoff_s = self._refresh_s, self._backoff_s
        while True:
            self._now.wait(wait_s)
            self._now.clear()
            if self._closed:
                return
            try:
                self._keys = parse_keys(self._fetch())
            except Exception as error:  # a malformed response: try again
                log.warning("the keys that sign tokens cannot be fetched: %s", error)
                wait_s, backoff_s = backoff_s, min(backoff_s * 2, self._max_backoff_s)
            else:
                wait_s, backoff_s = self._refresh_s, self._backoff_s


@lru_cache(maxsize=8)
def remote_keys(
    url: str, trust: str | None, refresh_ms: int, backoff_ms: int, max_backoff_ms: int
) -> RemoteKeys:
    """Return the shared instance for these arguments; `trust` is a PEM file, None for the
    system's."""
    return RemoteKeys(
        lambda: fetch(url, trust), refresh_ms / 1000, backoff_ms / 1000, max_backoff_ms / 1000
    )


def fetch(url: str, trust: str | None) -> str:
    """Fetch the key set. Raises OSError and ValueError."""
    context = ssl.create_default_context(cafile=trust)
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(MAX_BYTES + 1)
    except URLError as error:
        raise OSError(f"{url}: {error.reason}") from None
    except HTTPException as error:
        raise OSError(f"{url}: {error!r}") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"{url} has more than {MAX_BYTES} bytes")
    return data.decode()
