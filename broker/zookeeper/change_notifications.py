"""Change notifications: sequential nodes that announce changes in ZooKeeper to all brokers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator

from urteil.broker.base.tasks import Tasks
from urteil.broker.zookeeper.session import LOST, NoNodeError, Session, SessionClosed

log = logging.getLogger("notices")

KEPT_MS = 15 * 60 * 1000
"""How long notifications stay for brokers that were disconnected."""


class ChangeNotifications:
    """Follows the notifications under one path, oldest first (`ZkNodeChangeNotificationListener`).

    A notification only names its subject; the receiver reads the current state. `take` receives the
    bytes of each notification once. Malformed notifications and failures of `take` do not stop
    later ones.
    """

    def __init__(
        self,
        zk: Session,
        path: str,
        prefix: str,
        take: Callable[[bytes], Awaitable[None]],
        now_ms: Callable[[], int],
    ) -> None:
        self._zk = zk
        self._path = path
        self._prefix = prefix
        self._take = take
        self._now_ms = now_ms
        self._last_seen = -1
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._giving = Tasks("notices")

    async def start(self) -> None:
        """Follow all notifications from the oldest present one, so that no change between a read
        and this call is missed."""
        self._changed.set()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._giving.cancel()

    @contextlib.contextmanager
    def notify_in_any_case(self, data: bytes) -> Iterator[None]:
        """A context for a write that may complete although its caller is cancelled: the
        notification is sent in any case."""
        try:
            yield
        except asyncio.CancelledError:
            self._giving.spawn(self._create(data))
            raise

    async def notify(self, data: bytes) -> None:
        """Notify all brokers, even if the caller is cancelled."""
        await asyncio.shield(self._giving.spawn(self._create(data)))

    async def _create(self, data: bytes) -> None:
        """Create the notification, again after a lost connection: duplicates are harmless."""
        while True:
            try:
                await self._zk.create(f"{self._path}/{self._prefix}", data, sequence=True)
                return
            except LOST:
                continue

    def _on_watch(self, _path: str) -> None:
        self._changed.set()

    async def _names(self) -> list[str]:
        names = await self._zk.children(self._path, self._on_watch)
        return sorted((name for name in names if self._is_notice(name)), key=self._sequence)

    def _is_notice(self, name: str) -> bool:
        return name.startswith(self._prefix) and name.removeprefix(self._prefix).isdigit()

    def _sequence(self, name: str) -> int:
        return int(name.removeprefix(self._prefix))

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            names = await self._names()
            for name in names:
                if self._sequence(name) > self._last_seen:
                    self._last_seen = self._sequence(name)
                    await self._notice(name)
            await self._purge(names)

    async def _notice(self, name: str) -> None:
        try:
            data, _ = await self._zk.get(f"{self._path}/{name}")
        except NoNodeError:
            return
        try:
            await self._take(data)
        except SessionClosed:
            raise
        except Exception:
            log.warning("%s/%s cannot be processed", self._path, name, exc_info=True)

    async def _purge(self, names: list[str]) -> None:
        """Remove old notifications; only when a new one arrives, as in Kafka."""
        for name in names:
            path = f"{self._path}/{name}"
            stat = await self._zk.exists(path)
            if stat is None or self._now_ms() - stat.created_ms <= KEPT_MS:
                continue
            try:
                await self._zk.delete(path)
            except (NoNodeError, *LOST):
                continue  # another broker removed it, or the next notification repeats this
