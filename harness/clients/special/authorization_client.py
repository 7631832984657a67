"""Users whose permissions change, at every broker, and a user without any permission.

    python -m urteil.harness.clients.special.authorization_client SPEC.json

`visitor` and `stranger` authenticate by SCRAM at each broker's listener for users. All the time
they try to read and write a topic, to find the coordinators of a group and of a transactional id,
and to describe the cluster. Meanwhile an administrator grants these permissions to the visitor one
by one (the transactional id by its write permission, which implies describe) and revokes them, by
removing the allow ACL or by adding a deny ACL. The superuser `root` lists the visitor's ACLs at
each broker.

The stranger's ACLs allow only another host, or are denied as well, from the start to the end. Both
users also try a topic and a group with similar names that have no ACLs, and in turn all other
requests there. `guest` tries two passwords; the valid one changes, and at times neither is valid.
On SIGUSR1 the visitor gets all permissions once more and loses them in both ways; nothing changes
after that. The journal has every attempt with its result, and every change.
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

from urteil.chaos.waiting import retry
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop, handle_signal
from urteil.harness.evidence.journal import Access, JournalWriter, Right
from urteil.harness.protocol import authorization_requests as auth
from urteil.harness.protocol import unauthorized_changes
from urteil.harness.protocol import unauthorized_requests as unauthorized
from urteil.harness.protocol.authorization_requests import Acl, AuthenticationFailed
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.produce_requests import single_record_batch

Arguments = TypeVarTuple("Arguments")
TOPIC_NAME, GROUP = "urteil-visited", "urteil-visited"
BESIDE = f"{TOPIC_NAME}-too", GROUP[:-3]
"""A topic and a group to which no ACL applies, neither by name nor by prefix."""
NOT_HERE = "192.0.2.1"
ROOT = "root"
PASSWORDS = {"visitor": "visitor's own", "stranger": "stranger's own"}
GUEST = ("one of the guest's", "another of the guest's")
TRIES_EVERY_S = 0.15
CHANGES_EVERY_S = 0.5
SETUP_DEADLINE_S, SETUP_POLL_S = 30.0, 0.2
DENIED = {29: "TOPIC_AUTHORIZATION_FAILED", 30: "GROUP_AUTHORIZATION_FAILED",
          31: "CLUSTER_AUTHORIZATION_FAILED",
          53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"}  # fmt: skip
NOT_CONTROLLER = 41
PASSED = (0, 3, 6, 8, 11, 14, 15, 16, 19, 20, 25, 49, 69, 77)
"""Errors that a broker returns only after authorization: of leaders, replicas, metadata,
coordinators, members, producers, groups, controllers and brokers."""
BROKEN = (OSError, struct.error, UnicodeDecodeError, KeyError, ValueError)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a user, and the ACL that would allow it. `implied`: a stronger permission
    allows it, whose denial does not deny it."""

    what: str
    acl: Acl
    request: Callable[[Connection, int], int]
    implied: bool = False


def granted_attempts(user: str, timeout_ms: int) -> list[Attempt]:
    """The attempts of a user that an ACL may allow. `request` takes a connection and a number,
    which selects the partition."""
    principal = f"User:{user}"
    batch = single_record_batch(b"k", b"v", time.time_ns() // 1_000_000)
    return [
        Attempt("Read Topic", Acl(principal, auth.TOPIC, TOPIC_NAME, auth.READ),
            lambda at, n: auth.fetch(at, TOPIC_NAME, n % 3)),
        Attempt("Write Topic", Acl(principal, auth.TOPIC, TOPIC_NAME, auth.WRITE),
            lambda at, n: auth.produce(at, TOPIC_NAME, n % 3, batch, timeout_ms)),
        Attempt("Describe Group",
            Acl(principal, auth.GROUP, GROUP[:-2], auth.DESCRIBE, auth.PREFIXED),
            lambda at, _: auth.find_group(at, GROUP)),
        Attempt("Describe Cluster", Acl(principal, auth.CLUSTER, "kafka-cluster", auth.DESCRIBE),
            lambda at, _: auth.describe_acls(at)),
        Attempt("Find Transactional Id",
            Acl(principal, auth.TRANSACTIONAL_ID, TOPIC_NAME, auth.WRITE),
            lambda at, _: auth.find_transactional_id(at, TOPIC_NAME), implied=True),
    ]  # fmt: skip


def ungranted_attempts(user: str) -> list[Attempt]:
    """Attempts at a topic and a group without ACLs."""
    principal = f"User:{user}"
    topic, group = BESIDE
    return [
        Attempt("Read Topic beside", Acl(principal, auth.TOPIC, topic, auth.READ),
            lambda at, n: auth.fetch(at, topic, n % 3)),
        Attempt("Describe Group beside", Acl(principal, auth.GROUP, group, auth.DESCRIBE),
            lambda at, _: auth.find_group(at, group)),
    ]  # fmt: skip


def denied_acls(user: str) -> list[Acl]:
    """ACLs for the topic and the group that have both a deny and an allow entry; deny takes
    precedence."""
    principal, (topic, group) = f"User:{user}", BESIDE
    return [
        Acl(principal, auth.TOPIC, topic, auth.ALL),
        Acl(principal, auth.GROUP, group, auth.ALL),
    ]


def other_ungranted_attempts(user: str) -> list[Attempt]:
    """All other requests for the topic and the group without ACLs; one of them each round."""
    principal = f"User:{user}"
    topic, group = BESIDE
    of_topic = {
        "List Offsets": unauthorized.list_offsets,
        "Delete Records": unauthorized.delete_records,
        "Create Topic": unauthorized.create_topic,
        "Alter Configs": unauthorized.alter_configs,
        "Describe Configs": unauthorized.describe_configs,
        "Delete Topic": unauthorized_changes.delete_topic,
        "Create Partitions": unauthorized_changes.create_partitions,
        "Elect Leader": unauthorized_changes.elect_leader,
        "Ask For Epochs": unauthorized_changes.epoch_end,
        "Change Configs": unauthorized_changes.alter_configs,
        "End Transactions": unauthorized_changes.write_marker,
    }
    of_group = {
        "Use Transactional Id": unauthorized.init_producer_id,
        "Heartbeat": unauthorized.heartbeat,
        "Fetch Positions": unauthorized.fetch_positions,
        "Show Group": unauthorized.describe_group,
        "Delete Group": unauthorized.delete_group,
        "Commit": unauthorized_changes.commit,
        "Join": unauthorized_changes.join,
        "Sync": unauthorized_changes.sync,
        "Leave": unauthorized_changes.leave,
        "Delete Positions": unauthorized_changes.delete_positions,
        "Add To Transaction": unauthorized_changes.add_partition,
        "Add Group To Transaction": unauthorized_changes.add_offsets,
        "Commit In Transaction": unauthorized_changes.commit_in_transaction,
        "End Transaction": unauthorized_changes.end_transaction,
    }
    acl = Acl(principal, auth.TOPIC, topic, auth.READ)
    results = [
        Attempt(f"{what} beside", acl, _request_for(name, send))
        for name, requests in ((topic, of_topic), (group, of_group))
        for what, send in requests.items()
    ]
    unknown_user = Acl("User:nobody", auth.TOPIC, topic, auth.READ)
    return [
        *results,
        Attempt("Stop Replicas", acl, lambda at, _: unauthorized.stop_replicas(at)),
        Attempt("Shut Down", acl, lambda at, _: unauthorized_changes.shut_down(at)),
        Attempt("Grant", acl, lambda at, _: auth.create_acl(at, unknown_user, auth.ALLOW)),
    ]


def _request_for(
    name: str, send: Callable[[Connection, str], int]
) -> Callable[[Connection, int], int]:
    """The request for a topic or group, whichever the number of the attempt is."""
    return lambda at, _: send(at, name)


def subject(user: str, what: str) -> str:
    """The subject that attempts and changes of one permission share."""
    return f"User:{user} {what}"


def password_subject(number: int) -> str:
    return subject("guest", f"LogIn {number + 1}")


class BrokerAttempts:
    """All attempts at one broker, one after another."""

    def __init__(self, spec: ClientSpec, node: int, address: str, journal: JournalWriter) -> None:
        self._node, self._address, self._journal = node, address, journal
        self._timeout_s = spec.workload.request_timeout_ms / 1000
        self._connections: dict[str, Connection] = {}
        self._attempts = {
            user: granted_attempts(user, spec.workload.request_timeout_ms) for user in PASSWORDS
        }
        self._number = 0

    def run_round(self) -> None:
        """Run all attempts of all users."""
        self._number += 1
        for user, attempts in self._attempts.items():
            more = other_ungranted_attempts(user)
            for attempt in (*attempts, *ungranted_attempts(user), more[self._number % len(more)]):
                self._try(user, attempt)
        self._list_acls()
        for number, password in enumerate(GUEST):
            self._log_in(number, password)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _try(self, user: str, attempt: Attempt) -> None:
        at_ns = time.monotonic_ns()
        try:
            error = attempt.request(self._connection(user), self._number)
        except (AuthenticationFailed, *BROKEN) as failure:
            self._close(user)
            self._note(at_ns, subject(user, attempt.what), "info", type(failure).__name__)
            return
        outcome = "denied" if error in DENIED else "ok" if error in PASSED else "info"
        error_name = DENIED.get(error, f"error {error}") if error else None
        self._note(at_ns, subject(user, attempt.what), outcome, error_name)

    def _connection(self, user: str) -> Connection:
        if user not in self._connections:
            password = PASSWORDS.get(user, ROOT)
            self._connections[user] = auth.authenticate(
                self._address, user, password, self._timeout_s
            )
        return self._connections[user]

    def _close(self, user: str) -> None:
        if user in self._connections:
            self._connections.pop(user).close()

    def _list_acls(self) -> None:
        """Journal the broker's own list of the visitor's ACLs."""
        at_ns = time.monotonic_ns()
        try:
            acls = auth.list_acls(self._connection(ROOT), "User:visitor")
        except (AuthenticationFailed, *BROKEN):
            self._close(ROOT)
            return
        for attempt in self._attempts["visitor"]:
            permissions = {permission for acl, permission in acls if acl == attempt.acl}
            shown = "shows grant" if permissions == {auth.ALLOW} else "shows none"
            self._note(at_ns, subject("visitor", attempt.what), shown, None)

    def _log_in(self, number: int, password: str) -> None:
        at_ns = time.monotonic_ns()
        outcome, error_name = "ok", None
        try:
            auth.authenticate(self._address, "guest", password, self._timeout_s).close()
        except AuthenticationFailed:
            outcome, error_name = "denied", "SASL_AUTHENTICATION_FAILED"
        except BROKEN as failure:
            outcome, error_name = "info", type(failure).__name__
        self._note(at_ns, password_subject(number), outcome, error_name)

    def _note(self, at_ns: int, what: str, outcome: str, error_name: str | None) -> None:
        self._journal.write(
            Access(at_ns, time.monotonic_ns(), self._node, what, outcome, error_name)
        )


class Administrator:
    """Changes permissions through any broker, one change at a time, until it is acknowledged."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._spec, self._journal, self._stop = spec, journal, stop
        self._timeout_s = spec.workload.request_timeout_ms / 1000
        self._random = random.Random(spec.seed)
        self._attempts = granted_attempts("visitor", 0)
        self._granted: set[str] = set()
        self._denied: set[str] = set()
        self._password: int | None = None
        self._upcoming: list[int] = []

    def prepare(self) -> None:
        """Create the topic, the users with fixed passwords, and some initial ACLs."""
        admin = KafkaAdminClient(
            bootstrap_servers=list(self._spec.bootstrap),
            request_timeout_ms=int(SETUP_DEADLINE_S * 1000),
        )
        try:
            admin.create_topics({TOPIC_NAME: {"num_partitions": 3, "replication_factor": -1}})
        except TopicAlreadyExistsError:
            pass
        finally:
            admin.close()
        for user, password in {**PASSWORDS, ROOT: ROOT}.items():
            self._retry(auth.set_password, user, password)
        for acl in [
            replace(granted_attempt.acl, host=NOT_HERE)
            for granted_attempt in granted_attempts("stranger", 0)
        ]:
            self._retry(auth.create_acl, acl, auth.ALLOW)
        for kind in (auth.DENY, auth.ALLOW):
            for acl in denied_acls("stranger"):
                self._retry(auth.create_acl, acl, kind)
        for attempt in self._attempts[::2]:
            self._grant(attempt)

    def revoke_all(self) -> None:
        """Grant all permissions, wait until they are in effect, and revoke them: first by denials,
        then by removals. Two permissions belong to one topic and are revoked in different ways."""
        for attempt in self._attempts:
            if self._name(attempt) not in self._granted:
                self._grant(attempt)
        self._stop.wait(CHANGES_EVERY_S)
        for attempt in self._attempts[1::2]:
            self._revoke(attempt, by_denial=True)
        self._stop.wait(CHANGES_EVERY_S)
        for attempt in self._attempts[::2]:
            self._revoke(attempt, by_denial=False)
        if self._password is not None:
            self._set_password(None)

    def change(self) -> None:
        """Grant or revoke one permission, or change the guest's password. Each has one turn in
        every round of changes, in random order."""
        if not self._upcoming:
            self._upcoming = list(range(len(self._attempts) + 1))
            self._random.shuffle(self._upcoming)
        chosen = self._upcoming.pop()
        if chosen == len(self._attempts):
            self._change_password()
        else:
            self._change_acl(self._attempts[chosen])

    def _change_acl(self, attempt: Attempt) -> None:
        if self._name(attempt) in self._granted:
            self._revoke(attempt, by_denial=not attempt.implied and self._random.random() < 0.5)
        else:
            self._grant(attempt)

    def _grant(self, attempt: Attempt) -> None:
        what = self._name(attempt)
        if what in self._denied:
            self._act([(what, True)], lambda at: auth.delete_acl(at, attempt.acl, auth.DENY))
            self._denied.discard(what)
        else:
            self._act([(what, True)], lambda at: auth.create_acl(at, attempt.acl, auth.ALLOW))
        self._granted.add(what)

    def _revoke(self, attempt: Attempt, *, by_denial: bool) -> None:
        what = self._name(attempt)
        if by_denial:
            self._act([(what, False)], lambda at: auth.create_acl(at, attempt.acl, auth.DENY))
            self._denied.add(what)
        else:
            self._act([(what, False)], lambda at: auth.delete_acl(at, attempt.acl, auth.ALLOW))
        self._granted.discard(what)

    @staticmethod
    def _name(attempt: Attempt) -> str:
        return subject("visitor", attempt.what)

    def _change_password(self) -> None:
        """Change to the other password or to none."""
        others = [number for number in (0, 1, None) if number != self._password]
        self._set_password(self._random.choice(others))

    def _set_password(self, chosen: int | None) -> None:
        changes = [
            (password_subject(password), False)
            for password in (self._password,)
            if password is not None
        ]
        changes += [
            (password_subject(password), True) for password in (chosen,) if password is not None
        ]
        password = None if chosen is None else GUEST[chosen]
        self._act(changes, lambda at: auth.set_password(at, "guest", password))
        self._password = chosen

    def _act(self, changes: list[tuple[str, bool]], request: Callable[[Connection], int]) -> None:
        """Journal each attempt as a change of its own, because a request without response may take
        effect late."""

        def send(at: Connection) -> int:
            invoke_ns, outcome, error_name = time.monotonic_ns(), "info", None
            try:
                error = request(at)
                outcome, error_name = ("ok", None) if not error else ("info", f"error {error}")
                outcome = "fail" if error == NOT_CONTROLLER else outcome
                return error
            except BROKEN as failure:
                error_name = type(failure).__name__
                raise
            finally:
                now_ns = time.monotonic_ns()
                for what, granted in changes:
                    self._journal.write(
                        Right(invoke_ns, now_ns, what, granted, outcome, error_name)
                    )

        self._retry(send)

    def _retry(
        self, request: Callable[[Connection, *Arguments], int], *arguments: *Arguments
    ) -> None:
        """Send the request to the brokers in turn until one returns no error."""
        addresses = list(self._spec.bootstrap)
        self._random.shuffle(addresses)
        while not self._stop.is_set():
            for address in addresses:
                try:
                    at = Connection(address, self._timeout_s)
                except OSError:
                    continue
                try:
                    if not request(at, *arguments):
                        return
                except BROKEN:
                    continue
                finally:
                    at.close()
            self._stop.wait(0.1)


def exercise_access(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Run until the stop is requested."""
    is_last = threading.Event()
    handle_signal(signal.SIGUSR1, is_last.set)
    administrator = Administrator(spec, journal, stop)
    try:
        retry(
            administrator.prepare,
            KafkaError,
            deadline_s=SETUP_DEADLINE_S,
            poll_s=SETUP_POLL_S,
            stop=stop,
        )
    except KafkaError:
        if not stop.is_set():
            raise
    over = threading.Event()

    def run(attempts: BrokerAttempts) -> None:
        while not over.is_set():
            attempts.run_round()
            over.wait(TRIES_EVERY_S)
        attempts.close()

    threads = [
        threading.Thread(
            target=run, args=(BrokerAttempts(spec, node, address, journal),), daemon=True
        )
        for node, address in enumerate(spec.user_listeners, 1)
    ]
    for thread in threads:
        thread.start()
    while not stop.is_set() and not is_last.is_set():
        administrator.change()
        stop.wait(CHANGES_EVERY_S)
    administrator.revoke_all()
    while not stop.is_set():
        stop.wait(CHANGES_EVERY_S)
    over.set()
    for thread in threads:
        thread.join(spec.workload.request_timeout_ms / 1000 + 1)


KIND = ClientKind(
    name="visitor",
    about="Users whose permissions change try what they may, at every broker.",
    stage=Stage.OBSERVATION,
    judged_by=("unauthorised",),
    prefix="visitor",
    is_single=True,
    count=lambda scenario: int(scenario.cluster.users),
    work=exercise_access,
    handles_signals=True,
)

if __name__ == "__main__":
    run_client(KIND)
