"""Scheduled tasks: ISR shrinking, checkpoints, retention, flushes and log cleaning."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urteil.broker.base.clock import Clock
    from urteil.broker.config.broker_config import BrokerConfig
    from urteil.broker.log.cleaner.cleaner import Cleaner
    from urteil.broker.log.log_manager import LogManager
    from urteil.broker.replication.directory_failures import DirectoryFailures
    from urteil.broker.replication.replica_manager import ReplicaManager

log = logging.getLogger("upkeep")

TICK_MS = 1000.0


class ScheduledTasks:
    """Runs each duty in a task of its own, so that a slow one does not delay the others."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        logs: LogManager,
        cleaner: Cleaner,
        replicas: ReplicaManager,
        failures: DirectoryFailures,
    ) -> None:
        self._failures = failures
        self._logs = logs
        self._cleaner = cleaner
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self._look_at_cleaning = asyncio.Event()
        self._duties: list[tuple[float, Callable[[], None]]] = [
            (config.replica_lag_time_max_ms / 2, replicas.shrink_isrs),
            (
                config.replica_high_watermark_checkpoint_interval_ms,
                replicas.checkpoint_high_watermarks,
            ),
            (config.log_flush_offset_checkpoint_interval_ms, logs.checkpoint_recovery_points),
            (
                config.log_flush_start_offset_checkpoint_interval_ms,
                logs.checkpoint_log_start_offsets,
            ),
            (TICK_MS, self._tick),
        ]

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._repeat(period_ms / 1000, duty))
            for period_ms, duty in self._duties
        ]
        self._tasks.append(loop.create_task(self._clean()))

    async def _repeat(self, period_s: float, duty: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(period_s)
            try:
                duty()
            except Exception:
                log.exception("upkeep failed; it is tried again")

    async def _clean(self) -> None:
        while True:
            delay_ms = float(TICK_MS)
            self._look_at_cleaning.clear()
            try:
                delay_ms = min(self._cleaner.tick(self._clock.now_ms()), TICK_MS)
            except Exception:
                log.exception("cleaning failed; it is tried again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_ms / 1000):
                    await self._look_at_cleaning.wait()

    def clean_on(self) -> None:
        """Look for the next log to clean now, instead of at the next tick."""
        self._look_at_cleaning.set()

    def _tick(self) -> None:
        self._logs.tick(self._clock.now_ms())
        self._failures.handle()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
