"""ZooKeeper as a model: one linear history of a tree, with sessions that expire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)

from urteil.broker.zookeeper.session_types import Check, Create, Delete, MultiFailed, Op, Set, Stat
from urteil.suites.simulation.loop import SimulatedLoop

HOST = "zk"
Fire = Callable[[str], None]


@dataclass(slots=True)
class Node:
    data: bytes
    czxid: int
    mzxid: int
    owner: int = 0
    version: int = 0
    made: int = 0  # children ever, for sequential names
    children: dict[str, None] = field(default_factory=dict)

    @property
    def stat(self) -> Stat:
        return Stat(self.czxid, self.mzxid, self.version, self.owner)


@dataclass(frozen=True, slots=True)
class Change:
    """One version of one node; `data` is None where it was deleted."""

    at_s: float
    zxid: int
    path: str
    data: bytes | None
    version: int


class ServerSession:
    """What the ensemble knows of a session: its time, its nodes, and its connection's watches."""

    def __init__(self, number: int, timeout_s: float) -> None:
        self.id = number
        self.timeout_s = timeout_s
        self.ephemerals: dict[str, None] = {}
        self.data_watches: dict[str, None] = {}
        self.child_watches: dict[str, None] = {}
        self.fire: Callable[[str, str], None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.is_open = True

    def disconnect(self) -> None:
        """Watches belong to the connection: the client hears that it was lost."""
        self.data_watches.clear()
        self.child_watches.clear()
        self.fire = None


class Ensemble:
    """The tree and its sessions. Every operation is atomic, and all are in one order."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._context = loop.context_of(loop.network.born(HOST))
        self._nodes: dict[str, Node] = {"/": Node(b"", 0, 0)}
        self._zxid = 0
        self._sessions: dict[int, ServerSession] = {}
        self.history: list[Change] = []

    # sessions

    def begin(self, timeout_s: float) -> ServerSession:
        self._zxid += 1
        session = ServerSession(0x100000000 + self._zxid, timeout_s)
        self._sessions[session.id] = session
        self.touch(session)
        return session

    def find(self, number: int) -> ServerSession | None:
        return self._sessions.get(number)

    def touch(self, session: ServerSession) -> None:
        """It was heard of; it expires when that is a timeout ago."""
        if session.timer is not None:
            session.timer.cancel()
        session.timer = self._loop.call_later(
            session.timeout_s, self.expire, session, context=self._context
        )

    def expire(self, session: ServerSession) -> None:
        """End a session, by its time, its own wish or an operator's."""
        if not session.is_open:
            return
        session.is_open = False
        del self._sessions[session.id]
        if session.timer is not None:
            session.timer.cancel()
        self._loop.note("zk", "end", session.id)
        session.disconnect()
        for path in list(session.ephemerals):
            self._zxid += 1
            self._remove(path)

    # operations: each raises what a client's call raises

    def get(self, path: str) -> tuple[bytes, Stat]:
        node = self._node(path)
        return node.data, node.stat

    def exists(self, path: str) -> Stat | None:
        node = self._nodes.get(path)
        return None if node is None else node.stat

    def children(self, path: str) -> list[str]:
        return sorted(self._node(path).children)

    def ensure(self, path: str) -> None:
        nodes = [part for part in path.split("/") if part]
        for depth in range(1, len(nodes) + 1):
            each = "/" + "/".join(nodes[:depth])
            if each not in self._nodes:
                self.multi(None, [Create(each)])

    def create(
        self, session: ServerSession | None, op: Create, *, sequence: bool, make_parents: bool
    ) -> tuple[str, Stat]:
        parent = _parent(op.path)
        if make_parents:
            self.ensure(parent)
        if sequence:
            op = Create(f"{op.path}{self._node(parent).made:010d}", op.data, op.ephemeral)
        self._check(op)
        self._zxid += 1
        self._apply(session, op)
        return op.path, self._nodes[op.path].stat

    def set(self, path: str, data: bytes, version: int) -> Stat:
        self._check(Set(path, data, version))
        self._zxid += 1
        stat: Stat = self._apply(None, Set(path, data, version))
        return stat

    def delete(self, path: str, version: int) -> None:
        self._check(Delete(path, version))
        self._zxid += 1
        self._apply(None, Delete(path, version))

    def multi(self, session: ServerSession | None, ops: Sequence[Op]) -> list[Any]:
        """All or nothing, each operation seeing those before it."""
        before = {path: None if (node := self._nodes.get(path)) is None else _copy(node)
                  for op in ops for path in (op.path, _parent(op.path))}  # fmt: skip
        zxid, changes = self._zxid, len(self.history)
        watched: list[tuple[str, bool]] = []
        self._zxid += 1
        results = []
        for index, op in enumerate(ops):
            try:
                self._check(op)
            except KazooException as error:
                for path, node in before.items():
                    if node is None:
                        self._nodes.pop(path, None)
                    else:
                        self._nodes[path] = node
                self._zxid = zxid
                del self.history[changes:]
                raise MultiFailed(index, error) from None
            results.append(self._apply(session, op, watched))
        for path, by_parent in watched:
            self._fire(path, by_parent)
        return results

    def _check(self, op: Op) -> None:
        if isinstance(op, Create):
            if op.path in self._nodes:
                raise NodeExistsError
            if self._node(_parent(op.path)).owner:
                raise KazooException("no children of ephemerals")
            return
        node = self._node(op.path)
        if op.version not in (-1, node.version):
            raise BadVersionError
        if isinstance(op, Delete) and node.children:
            raise NotEmptyError

    def _apply(
        self, session: ServerSession | None, op: Op, watched: list[tuple[str, bool]] | None = None
    ) -> Any:
        match op:
            case Check():
                return True
            case Create():
                owner = session.id if op.ephemeral and session else 0
                self._nodes[op.path] = Node(op.data, self._zxid, self._zxid, owner)
                parent = self._nodes[_parent(op.path)]
                parent.children[op.path.rpartition("/")[2]] = None
                parent.made += 1
                if owner and session:
                    session.ephemerals[op.path] = None
                self._record_change(op.path, op.data, 0, True, watched)
                return op.path
            case Set():
                node = self._nodes[op.path]
                node.data, node.mzxid, node.version = op.data, self._zxid, node.version + 1
                self._record_change(op.path, op.data, node.version, False, watched)
                return node.stat
            case Delete():
                self._remove(op.path, watched)
                return True

    def _remove(self, path: str, watched: list[tuple[str, bool]] | None = None) -> None:
        node = self._nodes.pop(path)
        if (owner := self._sessions.get(node.owner)) is not None:
            owner.ephemerals.pop(path, None)
        if (parent := self._nodes.get(_parent(path))) is not None:
            parent.children.pop(path.rpartition("/")[2], None)
        self._record_change(path, None, node.version, True, watched)

    def _record_change(
        self,
        path: str,
        data: bytes | None,
        version: int,
        by_parent: bool,
        watched: list[tuple[str, bool]] | None,
    ) -> None:
        self.history.append(Change(self._loop.time(), self._zxid, path, data, version))
        self._loop.note("zk", self._zxid, path, data, version)
        if watched is None:
            self._fire(path, by_parent)
        else:
            watched.append((path, by_parent))

    def _fire(self, path: str, by_parent: bool) -> None:
        for session in list(self._sessions.values()):
            if session.fire is None:
                continue
            if path in session.data_watches:
                del session.data_watches[path]
                session.fire("data", path)
            gone = path in session.child_watches and path not in self._nodes
            for each in (_parent(path), path) if gone else (_parent(path),) if by_parent else ():
                if each in session.child_watches:
                    del session.child_watches[each]
                    session.fire("child", each)

    def _node(self, path: str) -> Node:
        node = self._nodes.get(path)
        if node is None:
            raise NoNodeError
        return node


def _copy(node: Node) -> Node:
    return Node(node.data, node.czxid, node.mzxid, node.owner, node.version, node.made,
                dict(node.children))  # fmt: skip


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"
