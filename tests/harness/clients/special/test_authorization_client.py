"""The visitor's tries and the administrator's changes, at a real broker."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.broker.conftest import chroot, zookeeper
from tests.broker.nodes import STEADY, Nodes
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.ports import free_port
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.special.authorization_client import (
    GUEST,
    Administrator,
    Visits,
    password_subject,
)
from urteil.harness.evidence.journal import Access, JournalReader, JournalWriter, Right
from urteil.harness.scenario import WorkloadSpec

__all__ = ["chroot", "zookeeper"]


class Guarded(Nodes):
    """One broker with ACLs and a listener for users."""

    def properties(self, broker: int) -> dict[str, str]:
        own = super().properties(broker)
        self.door = f"127.0.0.1:{free_port()}"
        return own | {
            "listeners": f"{own['listeners']},USERS://{self.door}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.users.scram-sha-256.sasl.jaas.config": "ScramLoginModule required;",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS;User:root",
            "default.replication.factor": "1",
            "offsets.topic.replication.factor": "1",
        }


class Never:
    """Nobody asks for the end."""

    def asked(self) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        threading.Event().wait(seconds)


@pytest.fixture
def nodes(tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str) -> Any:
    with Guarded(tmp_path, zookeeper, chroot, 1, **STEADY) as one:
        yield one


def test_what_is_granted_is_seen_and_what_is_not_is_denied(nodes: Guarded, tmp_path: Path) -> None:
    journal_file = tmp_path / "visitor.jsonl"
    spec = ClientSpec(
        run="r", client="visitor", session=1, kind="visitor", bootstrap=tuple(nodes.bootstrap),
        journal=str(journal_file), topics=(), workload=WorkloadSpec(),
        user_listeners=(nodes.door,), seed=4,
    )  # fmt: skip
    with JournalWriter(journal_file) as journal:
        administrator = Administrator(spec, journal, Never())  # type: ignore[arg-type]
        administrator.prepare()
        visits = Visits(spec, 1, nodes.door, journal)
        for _ in range(12):
            visits.once()
            administrator.change()
        visits.once()
        administrator.take_back()
        visits.once()
        visits.close()
        journal.end(1)
    entries = list(JournalReader(journal_file))
    tried = [one for one in entries if isinstance(one, Access)]
    changed = [one for one in entries if isinstance(one, Right)]
    assert {one.outcome for one in changed} == {"ok"}
    told = {(one.subject.split()[0], one.outcome) for one in tried}
    assert ("User:stranger", "denied") in told
    assert ("User:stranger", "ok") not in told
    for outcome in ("ok", "denied", "shows grant", "shows none"):
        assert ("User:visitor", outcome) in told, told
    assert not [one for one in tried if one.outcome == "info"]
    assert _lawful(entries) > len(GUEST)
    _taken_back(changed)
    assert msgspec.structs.asdict(tried[0])["node"] == 1
    assert any(one.subject == password_subject(0) for one in tried)


def _taken_back(changed: list[Right]) -> None:
    """In the end the visitor had all five rights, and lost all."""
    last = [one.granted for one in changed if one.subject.startswith("User:visitor")][-5:]
    had = {one.subject for one in changed if one.subject.startswith("User:visitor")}
    assert last == [False] * 5
    assert len(had) == 5


def _lawful(entries: list[Any]) -> int:
    """With one broker nothing is late: each try shows the last change. How many did."""
    now: dict[str, bool] = {}
    checked = 0
    for one in entries:
        if isinstance(one, Right):
            now[one.subject] = one.granted
        elif isinstance(one, Access) and "guest" not in one.subject:
            shown = one.outcome in ("ok", "shows grant")
            assert shown == now.get(one.subject, False), one
            checked += 1
    return checked
