"""An ordered queue of requests for each broker; a request is retried until the broker answers.

Source: `ControllerChannelManager` and `RequestSendThread`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from urteil.broker.controller.request_batch import Request
from urteil.broker.net.channels import Endpoint
from urteil.broker.wire.primitives import WireError
from urteil.broker.zookeeper.znodes import BrokerInfo

log = logging.getLogger("controller")

RETRY_BACKOFF_S = 0.1
PURPOSE = "controller"

ResponseHandler = Callable[[int, Request, Any], None]
"""Called with the broker, the request and its response."""


class RequestChannel(Protocol):
    """The part of `Channels` that senders use."""

    async def send(
        self, node: Endpoint, msg: Any, version: int, timeout_ms: float, *, purpose: str = ...
    ) -> Any: ...


class RequestSenders:
    """Sends each broker its requests in order, one in flight at a time."""

    def __init__(
        self,
        channels: RequestChannel,
        listener: str,
        timeout_ms: float,
        on_response: ResponseHandler,
    ) -> None:
        self._channels = channels
        self._listener = listener
        self._timeout_ms = timeout_ms
        self._handle_response = on_response
        self._senders: dict[int, _Sender] = {}
        self._closed = False

    def add(self, info: BrokerInfo) -> None:
        """Start a queue for a broker.

        Unanswered requests of an earlier registration in the same life are sent first. Requests to
        a broker that left were dropped by `remove`.
        """
        endpoint = info.endpoint(self._listener)
        if self._closed:
            return  # the event began before the term ended
        if endpoint is None:
            log.error("broker %d has no listener %s: nothing is sent", info.id, self._listener)
            return
        before = self._senders.get(info.id)
        self.remove(info.id)
        node = Endpoint(info.id, endpoint.host, endpoint.port)
        sender = _Sender(node, self._channels, self._timeout_ms, self._handle_response)
        self._senders[info.id] = sender
        for request in before.pending_requests if before is not None else ():
            sender.put(request)

    def remove(self, broker: int) -> None:
        """Drop a broker's queue with its unanswered requests."""
        sender = self._senders.pop(broker, None)
        if sender is not None:
            sender.close()

    def send(self, broker: int, request: Request) -> None:
        sender = self._senders.get(broker)
        if sender is not None:
            sender.put(request)

    async def wait_for_answers(self, broker: int) -> None:
        """Wait until the broker answered all requests sent so far, or left."""
        sender = self._senders.get(broker)
        if sender is not None:
            await sender.wait_for_answers()

    def close(self) -> None:
        """Close for good: later calls of `add` and `send` have no effect."""
        self._closed = True
        for broker in list(self._senders):
            self.remove(broker)


class _Sender:
    def __init__(
        self,
        node: Endpoint,
        channels: RequestChannel,
        timeout_ms: float,
        on_response: ResponseHandler,
    ) -> None:
        self._node = node
        self._channels = channels
        self._timeout_ms = timeout_ms
        self._handle_response = on_response
        self._queue: deque[Request] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._more = asyncio.Event()
        self._put = self._done = 0
        self._task = asyncio.create_task(self._run(), name=f"controller-to-{node.id}")

    @property
    def pending_requests(self) -> list[Request]:
        """Requests without an answer, in sending order."""
        return list(self._queue)

    def put(self, request: Request) -> None:
        self._queue.append(request)
        self._put += 1
        self._more.set()

    async def wait_for_answers(self) -> None:
        if self._done < self._put:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self._put, future))
            await future

    def close(self) -> None:
        self._task.cancel()
        self._release(self._put)

    async def _run(self) -> None:
        while True:
            await self._more.wait()
            while self._queue:
                request = self._queue[0]
                response = await self._until_answered(request)
                self._queue.popleft()
                self._handle_response(self._node.id, request, response)
                self._done += 1
                self._release(self._done)
            self._more.clear()

    async def _until_answered(self, request: Request) -> Any:
        tries = 0
        while True:
            try:
                return await self._channels.send(
                    self._node, request, request.MAX_VERSION, self._timeout_ms, purpose=PURPOSE
                )
            except (OSError, WireError) as error:
                tries += 1
                if tries in (1, 10) or tries % 100 == 0:
                    name = type(request).__name__
                    log.warning("%s to broker %d, try %d: %r", name, self._node.id, tries, error)
            await asyncio.sleep(RETRY_BACKOFF_S)

    def _release(self, upto: int) -> None:
        while self._waiting and self._waiting[0][0] <= upto:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
