"""Dispatch: from a frame to the handler of its API, and back to the buffers of the response."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from urteil.broker.api.error_responses import error_response
from urteil.broker.api.quota_charges import wait_of
from urteil.broker.api.registry import (
    SERVED,
    CloseConnection,
    RequestContext,
    RequestError,
    ServedApi,
)
from urteil.broker.api.request_splitting import handle_in_parts, is_long
from urteil.broker.metrics.request_counts import RequestCounts, kind_of
from urteil.broker.net.connection import Connection, Hangup
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.framing import RequestHeader, decode_request_header, encode_response
from urteil.broker.wire.messages import ApiVersionsResponse
from urteil.broker.wire.primitives import WireError
from urteil.broker.wire.schema import Message

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

log = logging.getLogger("dispatch")

LARGE_BYTES = 1 << 16
"""Requests from this size on are decoded in a thread."""
LARGE_PRODUCE_BYTES = 1 << 18
"""The limit for Produce, whose records are not decoded with the request."""


class Dispatcher:
    """Answers frames by the registry; unsupported requests get Apache Kafka's answers.

    `requests` counts answered requests; `large` is the number of large requests in progress.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self.requests = RequestCounts()
        self.large = 0

    async def answer(self, connection: Connection, frame: memoryview) -> list[Any] | None:
        """Return the response's buffers, or None if the API has no response. Raises Hangup."""
        if len(frame) <= LARGE_BYTES:
            return await self._answer(connection, frame)
        self.large += 1
        try:
            return await self._answer(connection, frame)
        finally:
            self.large -= 1

    async def _answer(self, connection: Connection, frame: memoryview) -> list[Any] | None:
        began_s = connection.time()
        try:
            header, pos = decode_request_header(frame)
        except WireError as error:
            raise Hangup(f"bad request header: {error}") from None
        served = SERVED.get(header.api_key)
        if served is None:
            raise Hangup(f"unknown API {header.api_key}")
        if not served.min_version <= header.api_version <= served.max_version:
            return self._unsupported_version_response(header)
        try:
            body = await self._decode(served, header.api_version, frame, pos)
        except WireError as error:
            raise Hangup(f"bad {served.key.name} {header.api_version}: {error}") from None
        context = RequestContext(
            header,
            connection.peer_host,
            connection.listener,
            connection.protocol,
            connection.principal,
        )
        connection.only_reads = header.api_key == ApiKey.FETCH
        waited_s = connection.waits.s
        try:
            try:
                response = await handle_in_parts(
                    body, served.parts, lambda part: served.handle(self._broker, context, part)
                )
            except RequestError as refusal:
                response = error_response(body, context.version, refusal.error)
            if self._broker.throttle.is_active:
                spent_s = connection.time() - began_s - (connection.waits.s - waited_s)
                response = self._throttle(connection, context, body, len(frame), spent_s, response)
            answer = None
            if response is not None:
                is_large = len(frame) > LARGE_BYTES or (bool(served.parts) and is_long(response))
                answer = await self._encode(header, response, is_large=is_large)
        except CloseConnection:
            raise Hangup from None
        except ConnectionError:
            raise
        except Exception:
            log.exception("%s %d failed", served.key.name, header.api_version)
            raise Hangup(f"{served.key.name} failed") from None
        kind = kind_of(header.api_key, header.api_version, body)
        arrived_s, ended_s = connection.last_active_s, connection.time()
        connection.last_active_s = ended_s
        waited_s = connection.waits.s - waited_s
        self.requests.count_request(kind, arrived_s, began_s, waited_s, ended_s)
        return answer

    def _throttle(
        self,
        connection: Connection,
        context: RequestContext,
        body: Message,
        size_bytes: int,
        spent_s: float,
        response: Any,
    ) -> Any:
        """Set the throttle time of the response and mute the connection for it (KIP-219)."""
        wait_ms = wait_of(self._broker.throttle, context, body, size_bytes, spent_s)
        wait_ms = max(wait_ms, getattr(response, "throttle_time_ms", 0))
        if not wait_ms:
            return response
        connection.mute(wait_ms / 1000)
        if hasattr(response, "throttle_time_ms"):
            return replace(response, throttle_time_ms=wait_ms)
        return response

    async def _decode(
        self, served: ServedApi, version: int, frame: memoryview, pos: int
    ) -> Message:
        """Raises WireError."""
        limit = LARGE_PRODUCE_BYTES if served.key == ApiKey.PRODUCE else LARGE_BYTES
        if len(frame) <= limit:
            return served.request.decode(version, frame, pos)[0]
        return await self._broker.offload.call(
            lambda: served.request.decode(version, frame, pos)[0]
        )

    async def _encode(
        self, header: RequestHeader, response: Message, *, is_large: bool
    ) -> list[Any]:
        def encode() -> list[Any]:
            place = (header.api_key, header.api_version, header.correlation_id)
            return list(encode_response(*place, response))

        return await self._broker.offload.call(encode) if is_large else encode()

    def _unsupported_version_response(self, header: RequestHeader) -> list[Any]:
        if header.api_key != ApiKey.API_VERSIONS:
            raise Hangup(f"unsupported version {header.api_version} of API {header.api_key}")
        served = SERVED[ApiKey.API_VERSIONS]
        own_range = ApiVersionsResponse.ApiVersion(
            api_key=served.key, min_version=served.min_version, max_version=served.max_version
        )
        refusal = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own_range]
        )
        buffers: list[Any] = encode_response(header.api_key, 0, header.correlation_id, refusal)
        return buffers
