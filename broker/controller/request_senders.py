"""One ordered queue of requests for every broker, each retried until answered or the broker left.

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

Answered = Callable[[int, Request, Any], None]
"""Called with the broker, the request and its response."""


class RequestChannel(Protocol):
    """What is needed of `Channels`."""

    async def send(
        self, node: Endpoint, msg: Any, version: int, timeout_ms: float, *, purpose: str = ...
    ) -> Any: ...


class RequestSenders:
    """Requests to one broker arrive in the order they were sent in here, none twice in flight."""

    def __init__(
        self, channels: RequestChannel, listener: str, timeout_ms: float, answered: Answered
    ) -> None:
        self._channels = channels
        self._listener = listener
        self._timeout_ms = timeout_ms
        self._answered = answered
        self._senders: dict[int, _Sender] = {}
        self._closed = False

    def add(self, info: BrokerInfo) -> None:
        """Start a queue for a broker; its requests wait until it answers.

        What was not answered under an earlier registration of the same life goes first: only a
        broker that left (`remove`) is not owed it any more.
        """
        endpoint = info.endpoint(self._listener)
        if self._closed:
            return  # an event that was under way when the term of office ended
        if endpoint is None:
            log.error("broker %d has no listener %s: nothing is sent", info.id, self._listener)
            return
        before = self._senders.get(info.id)
        self.remove(info.id)
        node = Endpoint(info.id, endpoint.host, endpoint.port)
        sender = _Sender(node, self._channels, self._timeout_ms, self._answered)
        self._senders[info.id] = sender
        for request in before.unanswered if before is not None else ():
            sender.put(request)

    def remove(self, broker: int) -> None:
        """Drop a broker's queue with all that was not answered."""
        sender = self._senders.pop(broker, None)
        if sender is not None:
            sender.close()

    def send(self, broker: int, request: Request) -> None:
        sender = self._senders.get(broker)
        if sender is not None:
            sender.put(request)

    async def answered_so_far(self, broker: int) -> None:
        """Wait until the broker answered what was sent to it before, or left."""
        sender = self._senders.get(broker)
        if sender is not None:
            await sender.answered_so_far()

    def close(self) -> None:
        """For good: what is added or sent later goes nowhere."""
        self._closed = True
        for broker in list(self._senders):
            self.remove(broker)


class _Sender:
    def __init__(
        self, node: Endpoint, channels: RequestChannel, timeout_ms: float, answered: Answered
    ) -> None:
        self._node = node
        self._channels = channels
        self._timeout_ms = timeout_ms
        self._answered = answered
        self._queue: deque[Request] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._more = asyncio.Event()
        self._put = self._done = 0
        self._task = asyncio.create_task(self._run(), name=f"controller-to-{node.id}")

    @property
    def unanswered(self) -> list[Request]:
        """In the order they were put in."""
        return list(self._queue)

    def put(self, request: Request) -> None:
        self._queue.append(request)
        self._put += 1
        self._more.set()

    async def answered_so_far(self) -> None:
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
                self._answered(self._node.id, request, response)
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
