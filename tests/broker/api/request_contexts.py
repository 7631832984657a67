"""The context a handler is called with, without a connection."""

from __future__ import annotations

from urteil.broker.api.registry import RequestContext
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.framing import RequestHeader


def context(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(RequestHeader(key, version, 1, "client"), "127.0.0.1", "PLAINTEXT")
