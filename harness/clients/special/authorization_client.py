"""People whose rights come and go, at every broker at once; and one whom nobody ever grants any.

    python -m urteil.harness.clients.special.authorization_client SPEC.json

`visitor` and `stranger` log in by SCRAM at the listener for users of each broker and try all the
time to read and write a topic, to find a group and a transactional id and to describe the cluster.
Meanwhile an administrator grants the visitor these rights one by one (to find the id by the right
to write with it, which implies that) and takes them back, by removing what allows or by adding what
denies; `root`, who may do all, has each broker tell what it knows of them. What is granted to
the stranger is so for another address alone, or denied as well, from the start to the end; and
everybody tries a topic and a group beside those, whose names are nearly the same, and which nobody
grants, and in turn all else that nobody may there: to ask, change and delete. `guest` tries two
passwords; which of them is his changes too, and at times neither is. On SIGUSR1 the visitor gets
all rights once more and loses them, some by each way; from then on nothing changes any more. The
journal has every try with what the broker said, and every change.
"""

from __future__ import annotations

import random
import signal
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVarTuple

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError

from urteil.harness.clients.client_main import Stop, hear, run_client
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.evidence.journal import Access, JournalWriter, Right
from urteil.harness.protocol import authorization_requests as wire
from urteil.harness.protocol import unauthorized_changes as acts
from urteil.harness.protocol import unauthorized_requests as forbidden
from urteil.harness.protocol.authorization_requests import Acl, AuthenticationFailed
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.produce_requests import single_record_batch

Told = TypeVarTuple("Told")
VISITED, GROUP = "urteil-visited", "urteil-visited"
BESIDE = f"{VISITED}-too", GROUP[:-3]
"""A topic and a group of which no right speaks, neither by its name nor by its prefix."""
NOT_HERE = "192.0.2.1"
ROOT = "root"
PASSWORDS = {"visitor": "visitor's own", "stranger": "stranger's own"}
GUEST = ("one of the guest's", "another of the guest's")
TRIES_EVERY_S = 0.15
CHANGES_EVERY_S = 0.5
SETUP_DEADLINE_S = 30.0
DENIED = {29: "TOPIC_AUTHORIZATION_FAILED", 30: "GROUP_AUTHORIZATION_FAILED",
          31: "CLUSTER_AUTHORIZATION_FAILED",
          53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"}  # fmt: skip
NOT_CONTROLLER = 41
PASSED = (0, 3, 6, 8, 11, 14, 15, 16, 19, 20, 25, 49, 69, 77)
"""Errors that nobody hears before it was looked whether he may: of leaders, replicas, metadata,
coordinators, members, producers, groups, controllers, brokers."""
BROKEN = (OSError, struct.error, UnicodeDecodeError, KeyError, ValueError)


@dataclass(frozen=True, slots=True)
class Try:
    """What somebody tries, and the entry that would allow it. `implied`: by what is more than it,
    the denial of which is none of it."""

    what: str
    acl: Acl
    ask: Callable[[Connection, int], int]
    implied: bool = False


def tries(user: str, timeout_ms: int) -> list[Try]:
    """Of one user; `ask` takes a connection and a number, by which partitions take turns."""
    who = f"User:{user}"
    batch = single_record_batch(b"k", b"v", time.time_ns() // 1_000_000)
    return [
        Try("Read Topic", Acl(who, wire.TOPIC, VISITED, wire.READ),
            lambda at, n: wire.fetch(at, VISITED, n % 3)),
        Try("Write Topic", Acl(who, wire.TOPIC, VISITED, wire.WRITE),
            lambda at, n: wire.produce(at, VISITED, n % 3, batch, timeout_ms)),
        Try("Describe Group", Acl(who, wire.GROUP, GROUP[:-2], wire.DESCRIBE, wire.PREFIXED),
            lambda at, _: wire.find_group(at, GROUP)),
        Try("Describe Cluster", Acl(who, wire.CLUSTER, "kafka-cluster", wire.DESCRIBE),
            lambda at, _: wire.describe_acls(at)),
        Try("Find Transactional Id", Acl(who, wire.TRANSACTIONAL_ID, VISITED, wire.WRITE),
            lambda at, _: wire.find_transactional_id(at, VISITED), implied=True),
    ]  # fmt: skip


def vain_tries(user: str) -> list[Try]:
    """What is never granted to anybody, beside what is."""
    who = f"User:{user}"
    topic, group = BESIDE
    return [
        Try("Read Topic beside", Acl(who, wire.TOPIC, topic, wire.READ),
            lambda at, n: wire.fetch(at, topic, n % 3)),
        Try("Describe Group beside", Acl(who, wire.GROUP, group, wire.DESCRIBE),
            lambda at, _: wire.find_group(at, group)),
    ]  # fmt: skip


def forbidden_for_good(user: str) -> list[Acl]:
    """Entries of what is beside: all is denied there, and allowed as well, which does not help."""
    who, (topic, group) = f"User:{user}", BESIDE
    return [Acl(who, wire.TOPIC, topic, wire.ALL), Acl(who, wire.GROUP, group, wire.ALL)]


def more_vain_tries(user: str) -> list[Try]:
    """The same of other requests, which take turns."""
    who = f"User:{user}"
    topic, group = BESIDE
    of_topic = {
        "List Offsets": forbidden.list_offsets,
        "Delete Records": forbidden.delete_records,
        "Create Topic": forbidden.create_topic,
        "Alter Configs": forbidden.alter_configs,
        "Describe Configs": forbidden.describe_configs,
        "Delete Topic": acts.delete_topic,
        "Create Partitions": acts.create_partitions,
        "Elect Leader": acts.elect_leader,
        "Ask For Epochs": acts.epoch_end,
        "Change Configs": acts.alter_configs,
        "End Transactions": acts.write_marker,
    }
    of_group = {
        "Use Transactional Id": forbidden.init_producer_id,
        "Heartbeat": forbidden.heartbeat,
        "Fetch Positions": forbidden.fetch_positions,
        "Show Group": forbidden.describe_group,
        "Delete Group": forbidden.delete_group,
        "Commit": acts.commit,
        "Join": acts.join,
        "Sync": acts.sync,
        "Leave": acts.leave,
        "Delete Positions": acts.delete_positions,
        "Add To Transaction": acts.add_partition,
        "Add Group To Transaction": acts.add_offsets,
        "Commit In Transaction": acts.commit_in_transaction,
        "End Transaction": acts.end_transaction,
    }
    acl = Acl(who, wire.TOPIC, topic, wire.READ)
    found = [
        Try(f"{what} beside", acl, lambda at, _, ask=ask, name=name: ask(at, name))  # type: ignore[misc]
        for name, asks in ((topic, of_topic), (group, of_group))
        for what, ask in asks.items()
    ]
    nobodys = Acl("User:nobody", wire.TOPIC, topic, wire.READ)
    return [
        *found,
        Try("Stop Replicas", acl, lambda at, _: forbidden.stop_replicas(at)),
        Try("Shut Down", acl, lambda at, _: acts.shut_down(at)),
        Try("Grant", acl, lambda at, _: wire.create_acl(at, nobodys, wire.ALLOW)),
    ]


def subject(user: str, what: str) -> str:
    """What tries and changes of one right have in common."""
    return f"User:{user} {what}"


def password_subject(number: int) -> str:
    return subject("guest", f"LogIn {number + 1}")


class Visits:
    """All tries at one broker, one after the other."""

    def __init__(self, spec: ClientSpec, node: int, address: str, journal: JournalWriter) -> None:
        self._node, self._address, self._journal = node, address, journal
        self._timeout_s = spec.workload.request_timeout_ms / 1000
        self._wires: dict[str, Connection] = {}
        self._tries = {user: tries(user, spec.workload.request_timeout_ms) for user in PASSWORDS}
        self._number = 0

    def once(self) -> None:
        """Everybody tries everything."""
        self._number += 1
        for user, attempts in self._tries.items():
            more = more_vain_tries(user)
            for attempt in (*attempts, *vain_tries(user), more[self._number % len(more)]):
                self._try(user, attempt)
        self._ask_for_acls()
        for number, password in enumerate(GUEST):
            self._log_in(number, password)

    def close(self) -> None:
        for one in self._wires.values():
            one.close()
        self._wires.clear()

    def _try(self, user: str, attempt: Try) -> None:
        at_ns = time.monotonic_ns()
        try:
            error = attempt.ask(self._wire(user), self._number)
        except (AuthenticationFailed, *BROKEN) as failure:
            self._hang_up(user)
            self._note(at_ns, subject(user, attempt.what), "info", type(failure).__name__)
            return
        outcome = "denied" if error in DENIED else "ok" if error in PASSED else "info"
        told = DENIED.get(error, f"error {error}") if error else None
        self._note(at_ns, subject(user, attempt.what), outcome, told)

    def _wire(self, user: str) -> Connection:
        if user not in self._wires:
            password = PASSWORDS.get(user, ROOT)
            self._wires[user] = wire.authenticate(self._address, user, password, self._timeout_s)
        return self._wires[user]

    def _hang_up(self, user: str) -> None:
        if user in self._wires:
            self._wires.pop(user).close()

    def _ask_for_acls(self) -> None:
        """What the broker itself knows of the visitor's rights."""
        at_ns = time.monotonic_ns()
        try:
            told = wire.list_acls(self._wire(ROOT), "User:visitor")
        except (AuthenticationFailed, *BROKEN):
            self._hang_up(ROOT)
            return
        for one in self._tries["visitor"]:
            permissions = {permission for acl, permission in told if acl == one.acl}
            shown = "shows grant" if permissions == {wire.ALLOW} else "shows none"
            self._note(at_ns, subject("visitor", one.what), shown, None)

    def _log_in(self, number: int, password: str) -> None:
        at_ns = time.monotonic_ns()
        outcome, told = "ok", None
        try:
            wire.authenticate(self._address, "guest", password, self._timeout_s).close()
        except AuthenticationFailed:
            outcome, told = "denied", "SASL_AUTHENTICATION_FAILED"
        except BROKEN as failure:
            outcome, told = "info", type(failure).__name__
        self._note(at_ns, password_subject(number), outcome, told)

    def _note(self, at_ns: int, what: str, outcome: str, told: str | None) -> None:
        self._journal.write(Access(at_ns, time.monotonic_ns(), self._node, what, outcome, told))


class Administrator:
    """Changes rights, by any broker; one change at a time, tried until it is acknowledged."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._spec, self._journal, self._stop = spec, journal, stop
        self._timeout_s = spec.workload.request_timeout_ms / 1000
        self._random = random.Random(spec.seed)
        self._tries = tries("visitor", 0)
        self._granted: set[str] = set()
        self._denied: set[str] = set()
        self._password: int | None = None

    def prepare(self) -> None:
        """The topic, the users whose passwords stay, and some rights from the start."""
        admin = KafkaAdminClient(
            bootstrap_servers=list(self._spec.bootstrap),
            request_timeout_ms=int(SETUP_DEADLINE_S * 1000),
        )
        try:
            admin.create_topics({VISITED: {"num_partitions": 3, "replication_factor": -1}})
        except TopicAlreadyExistsError:
            pass
        finally:
            admin.close()
        for user, password in {**PASSWORDS, ROOT: ROOT}.items():
            self._until(wire.set_password, user, password)
        for acl in [replace(one.acl, host=NOT_HERE) for one in tries("stranger", 0)]:
            self._until(wire.create_acl, acl, wire.ALLOW)
        for kind in (wire.DENY, wire.ALLOW):
            for acl in forbidden_for_good("stranger"):
                self._until(wire.create_acl, acl, kind)
        for one in self._tries[::2]:
            self._grant(one)

    def take_back(self) -> None:
        """Grant all, wait until that was heard, and take it back: first by denials, then by
        removals. Two of the rights are of one topic, and one of them goes either way."""
        for one in self._tries:
            if self._name(one) not in self._granted:
                self._grant(one)
        self._stop.wait(CHANGES_EVERY_S)
        for one in self._tries[1::2]:
            self._revoke(one, by_denial=True)
        self._stop.wait(CHANGES_EVERY_S)
        for one in self._tries[::2]:
            self._revoke(one, by_denial=False)
        if self._password is not None:
            self._set_password(None)

    def change(self) -> None:
        """Grant or take back one right, or change the guest's password."""
        chosen = self._random.randrange(len(self._tries) + 1)
        if chosen == len(self._tries):
            self._change_password()
        else:
            self._change_acl(self._tries[chosen])

    def _change_acl(self, one: Try) -> None:
        if self._name(one) in self._granted:
            self._revoke(one, by_denial=not one.implied and self._random.random() < 0.5)
        else:
            self._grant(one)

    def _grant(self, one: Try) -> None:
        what = self._name(one)
        if what in self._denied:
            self._act([(what, True)], lambda at: wire.delete_acl(at, one.acl, wire.DENY))
            self._denied.discard(what)
        else:
            self._act([(what, True)], lambda at: wire.create_acl(at, one.acl, wire.ALLOW))
        self._granted.add(what)

    def _revoke(self, one: Try, *, by_denial: bool) -> None:
        what = self._name(one)
        if by_denial:
            self._act([(what, False)], lambda at: wire.create_acl(at, one.acl, wire.DENY))
            self._denied.add(what)
        else:
            self._act([(what, False)], lambda at: wire.delete_acl(at, one.acl, wire.ALLOW))
        self._granted.discard(what)

    @staticmethod
    def _name(one: Try) -> str:
        return subject("visitor", one.what)

    def _change_password(self) -> None:
        """To the other one, or to none."""
        others = [number for number in (0, 1, None) if number != self._password]
        self._set_password(self._random.choice(others))

    def _set_password(self, chosen: int | None) -> None:
        changes = [(password_subject(one), False) for one in (self._password,) if one is not None]
        changes += [(password_subject(one), True) for one in (chosen,) if one is not None]
        password = None if chosen is None else GUEST[chosen]
        self._act(changes, lambda at: wire.set_password(at, "guest", password))
        self._password = chosen

    def _act(self, changes: list[tuple[str, bool]], ask: Callable[[Connection], int]) -> None:
        """Every attempt is a change of its own: one that was not answered may take effect late."""

        def once(at: Connection) -> int:
            invoke_ns, outcome, told = time.monotonic_ns(), "info", None
            try:
                error = ask(at)
                outcome, told = ("ok", None) if not error else ("info", f"error {error}")
                outcome = "fail" if error == NOT_CONTROLLER else outcome
                return error
            except BROKEN as failure:
                told = type(failure).__name__
                raise
            finally:
                now_ns = time.monotonic_ns()
                for what, granted in changes:
                    self._journal.write(Right(invoke_ns, now_ns, what, granted, outcome, told))

        self._until(once)

    def _until(self, ask: Callable[[Connection, *Told], int], *told: *Told) -> None:
        """Ask one broker after the other until one answers without an error."""
        addresses = list(self._spec.bootstrap)
        self._random.shuffle(addresses)
        while not self._stop.asked():
            for address in addresses:
                try:
                    at = Connection(address, self._timeout_s)
                except OSError:
                    continue
                try:
                    if not ask(at, *told):
                        return
                except BROKEN:
                    continue
                finally:
                    at.close()
            self._stop.wait(0.1)


def visit(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Until the end is asked for."""
    is_last = threading.Event()
    hear(signal.SIGUSR1, is_last.set)
    administrator = Administrator(spec, journal, stop)
    deadline = time.monotonic() + SETUP_DEADLINE_S
    while not stop.asked():
        try:
            administrator.prepare()
            break
        except KafkaError:
            if time.monotonic() > deadline:
                raise
            stop.wait(0.2)
    over = threading.Event()

    def run(visits: Visits) -> None:
        while not over.is_set():
            visits.once()
            over.wait(TRIES_EVERY_S)
        visits.close()

    threads = [
        threading.Thread(target=run, args=(Visits(spec, node, address, journal),), daemon=True)
        for node, address in enumerate(spec.user_listeners, 1)
    ]
    for thread in threads:
        thread.start()
    while not stop.asked() and not is_last.is_set():
        administrator.change()
        stop.wait(CHANGES_EVERY_S)
    administrator.take_back()
    while not stop.asked():
        stop.wait(CHANGES_EVERY_S)
    over.set()
    for thread in threads:
        thread.join(spec.workload.request_timeout_ms / 1000 + 1)


if __name__ == "__main__":
    run_client(visit)
