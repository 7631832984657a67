"""Access attempts and permission changes at a real broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.broker.conftest import chroot, zookeeper
from tests.broker.nodes import STEADY, Nodes
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.ports import free_port
from tests.waiting import until
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.special.authorization_client import (
    GUEST,
    Administrator,
    BrokerAttempts,
    password_subject,
)
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import Access, JournalReader, JournalWriter, Right
from urteil.harness.protocol import authorization_requests as auth
from urteil.harness.protocol.connection import Connection
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


@pytest.fixture
def nodes(tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str) -> Any:
    with Guarded(tmp_path, zookeeper, chroot, 1, **STEADY) as guarded:
        yield guarded


def test_granted_access_succeeds_and_other_access_is_denied(nodes: Guarded, tmp_path: Path) -> None:
    journal_file = tmp_path / "visitor.jsonl"
    spec = ClientSpec(
        run="r", client="visitor", session=1, kind="visitor", bootstrap=tuple(nodes.bootstrap),
        journal=str(journal_file), topics=(), workload=WorkloadSpec(),
        user_listeners=(nodes.door,), seed=4,
    )  # fmt: skip
    with JournalWriter(journal_file) as journal:
        administrator = Administrator(spec, journal, Stop())
        administrator.prepare()
        attempts = BrokerAttempts(spec, 1, nodes.door, journal)
        for _ in range(12):
            attempts.run_round()
            administrator.change()
        attempts.run_round()
        administrator.revoke_all()
        attempts.run_round()
        attempts.close()
        journal.end(1)
    entries = list(JournalReader(journal_file))
    attempts_made = [entry for entry in entries if isinstance(entry, Access)]
    changed = [entry for entry in entries if isinstance(entry, Right)]
    assert {entry.outcome for entry in changed} == {"ok"}
    outcomes = {(entry.subject.split()[0], entry.outcome) for entry in attempts_made}
    assert ("User:stranger", "denied") in outcomes
    assert ("User:stranger", "ok") not in outcomes
    for outcome in ("ok", "denied", "shows grant", "shows none"):
        assert ("User:visitor", outcome) in outcomes, outcomes
    assert not [entry for entry in attempts_made if entry.outcome == "info"]
    assert _count_consistent(entries) > len(GUEST)
    _assert_all_revoked(changed)
    assert msgspec.structs.asdict(attempts_made[0])["node"] == 1
    assert any(entry.subject == password_subject(0) for entry in attempts_made)


def test_credential_is_removed_again_without_error(nodes: Guarded) -> None:
    """As after a removal whose response was lost. A broker serves before it is controller."""
    connection = Connection(nodes.bootstrap[0], 5.0)
    until(lambda: auth.set_password(connection, "guest", GUEST[0]) == 0)
    assert auth.set_password(connection, "guest", None) == 0
    assert auth.set_password(connection, "guest", None) == 0
    connection.close()


def test_every_round_of_changes_changes_the_password(nodes: Guarded, tmp_path: Path) -> None:
    spec = ClientSpec(
        run="r", client="visitor", session=1, kind="visitor", bootstrap=tuple(nodes.bootstrap),
        journal=str(tmp_path / "visitor.jsonl"), topics=(), workload=WorkloadSpec(), seed=4,
    )  # fmt: skip
    with JournalWriter(tmp_path / "visitor.jsonl") as journal:
        administrator = Administrator(spec, journal, Stop())
        for _ in range(6):
            administrator.change()
        journal.end(1)
    changed = [
        right for right in JournalReader(tmp_path / "visitor.jsonl") if isinstance(right, Right)
    ]
    assert len({right.subject for right in changed}) == 6


def _assert_all_revoked(changed: list[Right]) -> None:
    """The visitor had all five permissions and lost all of them."""
    last = [right.granted for right in changed if right.subject.startswith("User:visitor")][-5:]
    had = {right.subject for right in changed if right.subject.startswith("User:visitor")}
    assert last == [False] * 5
    assert len(had) == 5


def _count_consistent(entries: list[Any]) -> int:
    """With one broker every attempt shows the last change. Returns the number of attempts."""
    now: dict[str, bool] = {}
    checked = 0
    for entry in entries:
        if isinstance(entry, Right):
            now[entry.subject] = entry.granted
        elif isinstance(entry, Access) and "guest" not in entry.subject:
            shown = entry.outcome in ("ok", "shows grant")
            assert shown == now.get(entry.subject, False), entry
            checked += 1
    return checked
