"""Throughput of a group coordinator, and the time until its successor answers. The benchmark packs
requests itself, in old versions that brokers still accept, so that no client's own waits are
measured."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from load_tools import Load

from urteil.chaos.waiting import until
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import encode_request, encode_string
from urteil.harness.scenario import ClusterSpec

SPEC = ClusterSpec(config={"offsets.topic.num.partitions": "1"})
OFFSETS_TOPIC = "__consumer_offsets"
COMMIT, FETCH, COORDINATOR, JOIN, SYNC = (8, 2), (9, 1), (10, 0), (11, 1), (14, 0)
COMMITTERS, SECONDS, WARM_UP_S = 8, 10.0, 3.0
MEMBERS, ROUNDS = 50, 5
GROUPS, PARTITIONS = 1000, 100
SESSION_MS, REBALANCE_MS = 30_000, 60_000
TIMEOUT_S, DEADLINE_S, POLL_S = 60.0, 120.0, 0.01
ROWS = {
    "commits_per_s": "commits of one position, 8 groups (commits/s)",
    "rebalance_50_ms": "rebalance of a group of 50 members, median of 5 (ms)",
    "offsets_failover_s": "SIGKILL of a coordinator until its 100,000 offsets are available (s)",
    "offsets_loaded_s": "of that, after ZooKeeper ended its session (s)",
}


def measure(load: Load, scale: float) -> dict[str, float]:
    """Measure without proxies. It uses 1,000 groups of 100 offsets at any scale."""
    load.create("work", PARTITIONS, 3)
    addresses = _addresses(load)
    home = _await_coordinator(addresses, "bench-0")
    _commits_per_s(addresses[home], WARM_UP_S)
    figures = {
        "commits_per_s": _commits_per_s(addresses[home], SECONDS * scale),
        "rebalance_50_ms": _rebalances(addresses[home]) * 1000,
    }
    _fill(addresses[home])
    session_s, answered_s = _fail_over(load, addresses, home)
    return figures | {
        "offsets_failover_s": answered_s,
        "offsets_loaded_s": answered_s - session_s,
    }


def _addresses(load: Load) -> dict[str, str]:
    plan = load.cluster.plan
    return {node: f"{plan.address(node)}:{plan.ports.internal}" for node in plan.brokers}


def _await_coordinator(addresses: dict[str, str], group: str) -> str:
    """The coordinator of all groups, once it answers."""
    request = encode_request(COORDINATOR, 1, encode_string(group))

    def find_coordinator() -> str:
        connection = Connection(addresses["b1"], TIMEOUT_S)
        error, node = struct.unpack_from(">hi", connection.call(request), 4)
        connection.close()
        answers = not error and _position(addresses[f"b{node}"], group) is not None
        return f"b{node}" if answers else ""

    coordinator = until(find_coordinator, deadline_s=DEADLINE_S, poll_s=POLL_S)
    if not coordinator:
        raise TimeoutError(f"no coordinator of {group} after {DEADLINE_S:g} s")
    return coordinator


# Commits


def _commit(group: str, positions: range, offset: int) -> bytes:
    entries = b"".join(
        struct.pack(">iq", position, offset) + encode_string("") for position in positions
    )
    body = (
        encode_string(group) + struct.pack(">i", -1) + encode_string("") + struct.pack(">qi", -1, 1)
    )
    return encode_request(
        COMMIT, 1, body + encode_string("work") + struct.pack(">i", len(positions)) + entries
    )


def _check_commit(answer: bytes) -> None:
    (error,) = struct.unpack_from(">h", answer, len(answer) - 2)
    if error:
        raise RuntimeError(f"a commit was answered with error {error}")


def _commits_per_s(address: str, seconds: float) -> float:
    def commit(number: int) -> int:
        connection, done = Connection(address, TIMEOUT_S), 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            _check_commit(connection.call(_commit(f"bench-{number}", range(1), done)))
            done += 1
        connection.close()
        return done

    with ThreadPoolExecutor(COMMITTERS) as pool:
        return sum(pool.map(commit, range(COMMITTERS))) / seconds


# A rebalance


class Member:
    """One member of the group, on a connection of its own."""

    def __init__(self, address: str) -> None:
        self._connection = Connection(address, TIMEOUT_S)
        self.name = ""

    def join(self, number: int) -> None:
        """Join with new metadata, which starts a rebalance, and return the assignment."""
        metadata = struct.pack(">i", number)
        body = (
            encode_string("fifty")
            + struct.pack(">ii", SESSION_MS, REBALANCE_MS)
            + encode_string(self.name)
        )
        body += encode_string("consumer") + struct.pack(">i", 1) + encode_string("range")
        body += struct.pack(">i", len(metadata)) + metadata
        answer = self._connection.call(encode_request(JOIN, 1, body))
        error, generation, size = struct.unpack_from(">hih", answer, 4)
        at = 12 + size
        leader, at = _text_at(answer, at)
        self.name, at = _text_at(answer, at)
        if error:
            raise RuntimeError(f"JoinGroup was answered with error {error}")
        self._sync(generation, _members_at(answer, at) if leader == self.name else [])

    def _sync(self, generation: int, members: Sequence[str]) -> None:
        body = encode_string("fifty") + struct.pack(">i", generation) + encode_string(self.name)
        body += struct.pack(">i", len(members))
        body += b"".join(
            encode_string(member) + struct.pack(">i", 4) + b"part" for member in members
        )
        error, size = struct.unpack_from(
            ">hi", self._connection.call(encode_request(SYNC, 1, body)), 4
        )
        if error or size != 4:
            raise RuntimeError(f"SyncGroup was answered with error {error}, {size} bytes")

    def close(self) -> None:
        self._connection.close()


def _text_at(answer: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", answer, at)
    return answer[at + 2 : at + 2 + size].decode(), at + 2 + size


def _members_at(answer: bytes, at: int) -> list[str]:
    (count,) = struct.unpack_from(">i", answer, at)
    names, at = [], at + 4
    for _ in range(count):
        name, at = _text_at(answer, at)
        (size,) = struct.unpack_from(">i", answer, at)
        names, at = [*names, name], at + 4 + size
    return names


def _rebalances(address: str) -> float:
    """Time from the join until all members have their assignment of the new generation."""
    members = [Member(address) for _ in range(MEMBERS)]
    took = []
    with ThreadPoolExecutor(MEMBERS) as pool:
        for number in range(ROUNDS + 1):
            began = time.monotonic()
            list(pool.map(_joiner(number), members))
            took.append(time.monotonic() - began)
    for member in members:
        member.close()
    return sorted(took[1:])[ROUNDS // 2]  # the first one waits for members


def _joiner(number: int) -> Callable[[Member], None]:
    return lambda member: member.join(number)


# Failover


def _fill(address: str) -> None:
    connection = Connection(address, TIMEOUT_S)
    for group in range(GROUPS):
        _check_commit(connection.call(_commit(f"full-{group}", range(PARTITIONS), group)))
    connection.close()


def _position(address: str, group: str) -> int | None:
    """The group's offset in partition 0; None if this broker does not return it."""
    body = (
        encode_string(group)
        + struct.pack(">i", 1)
        + encode_string("work")
        + struct.pack(">ii", 1, 0)
    )
    try:
        connection = Connection(address, TIMEOUT_S)
        answer = connection.call(encode_request(FETCH, 1, body))
        connection.close()
    except OSError:
        return None
    (topics,) = struct.unpack_from(">i", answer, 4)
    if not topics:  # a broker that is not the coordinator returns no topics
        return None
    (error,) = struct.unpack_from(">h", answer, len(answer) - 2)
    (offset,) = struct.unpack_from(">q", answer, 4 + 4 + 2 + len("work") + 4 + 4)
    return None if error else int(offset)


def _fail_over(load: Load, addresses: dict[str, str], home: str) -> tuple[float, float]:
    """The times at which ZooKeeper ended the session, and a broker returned the last offset."""
    controls = load.cluster.controls()
    others = [address for node, address in addresses.items() if node != home]
    began, session_s = time.monotonic(), 0.0
    controls.kill(home)

    def is_answered() -> bool:
        nonlocal session_s
        if not session_s and home not in controls.registered_brokers():
            session_s = time.monotonic() - began
        return any(_position(other, f"full-{GROUPS - 1}") == GROUPS - 1 for other in others)

    if not until(is_answered, deadline_s=DEADLINE_S, poll_s=POLL_S):
        raise TimeoutError(f"no successor of {home} answers after {DEADLINE_S:g} s")
    answered_s = time.monotonic() - began
    return session_s or answered_s, answered_s
