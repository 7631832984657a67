"""The registry of APIs: versions and handler of each."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from urteil.broker.security.principals import ANONYMOUS, Principal
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.framing import RequestHeader
from urteil.broker.wire.messages import REQUESTS
from urteil.broker.wire.schema import Message

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts


class CloseConnection(Exception):
    """Raised by a handler to close the connection without a response."""


class RequestError(Exception):
    """Raised by a handler to fail the request as a whole; see `error_responses`."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The origin of a request: its header, the peer's address, the listener with its security
    protocol, and the principal that the peer was authenticated as."""

    header: RequestHeader
    host: str
    listener: str
    protocol: str = "PLAINTEXT"
    principal: Principal = ANONYMOUS

    @property
    def version(self) -> int:
        return self.header.api_version


Handler = Callable[["BrokerParts", RequestContext, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ServedApi:
    """One served API: its key, the versions advertised, its request class and its handler; arrays
    of the request whose elements are answered one by one, with the response's (`api.parts`)."""

    key: ApiKey
    min_version: int
    max_version: int
    request: type[Message]
    handle: Handler
    parts: Mapping[str, str]


SERVED: dict[int, ServedApi] = {}


def handler(
    key: ApiKey, min_version: int, max_version: int, **fields: str
) -> Callable[[Handler], Handler]:
    """Register `async def handle(broker, context, request) -> response | None` for an API.

    None means no answer (acks=0). ApiVersions advertises what is registered here.
    """

    def register(function: Handler) -> Handler:
        if key in SERVED:
            raise ValueError(f"{key.name} has two handlers")
        SERVED[key] = ServedApi(key, min_version, max_version, request_class(key), function, fields)
        return function

    return register


def request_class(key: int) -> type[Message]:
    """The message class of an API's request. Raises LookupError for an unknown key."""
    request_type = REQUESTS.get(key)
    if request_type is None:
        raise LookupError(f"no request message has the API key {key}")
    return request_type


def load_handlers() -> None:
    """Import every module of `broker.api`, so that each registers its handlers."""
    package = importlib.import_module("urteil.broker.api")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"urteil.broker.api.{module.name}")
