"""Concurrent changes of quotas and credentials, on settings in memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from urteil.broker.config.incremental_changes import RejectedChange
from urteil.broker.quotas.alterations import QuotaAdmin
from urteil.broker.quotas.quota_table import Quota, QuotaTable, entity
from urteil.broker.quotas.stored_quotas import QuotaConfigs
from urteil.broker.security.sasl.scram_alterations import ScramAdmin, Upsertion


class Settings:
    """`EntityConfigs` of one user; other tasks run between its reads and writes."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.standing: Mapping[str, str] = {}

    def on_change(self, *_: Any) -> None:
        """No notifications."""

    async def read_or_empty(self, kind: str, name: str) -> dict[str, str]:
        entries = dict(self.standing)
        await asyncio.sleep(0)
        return entries

    async def write(self, kind: str, name: str, settings: Mapping[str, str]) -> None:
        await asyncio.sleep(0)
        self.standing = settings


def test_concurrent_changes_of_quotas_and_credentials_are_kept() -> None:
    async def scenario() -> None:
        settings: Any = Settings()
        quotas, credentials = QuotaAdmin(QuotaConfigs(settings, QuotaTable())), ScramAdmin(settings)
        await asyncio.gather(
            quotas.alter(entity(user="ann"), {Quota.PRODUCE: 1000.0}, validate_only=False),
            credentials.alter([Upsertion("ann", 1, 4096, b"salt", b"salted")]),
        )
        assert sorted(settings.standing) == ["SCRAM-SHA-256", "producer_byte_rate"]

    asyncio.run(scenario())


def test_name_resolution_delays_only_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async def unknown(*_: Any) -> Any:
            raise socket.gaierror("no such host")

        def blocking(*_: Any) -> Any:
            raise AssertionError("the whole broker waits")

        monkeypatch.setattr(socket, "getaddrinfo", blocking)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
        settings: Any = Settings()
        admin, change = QuotaAdmin(QuotaConfigs(settings, QuotaTable())), {Quota.CONNECTION: 1.0}
        with pytest.raises(RejectedChange, match=r"far\.example is not a valid IP"):
            await admin.alter(entity(ip="far.example"), change, validate_only=True)

    asyncio.run(scenario())
