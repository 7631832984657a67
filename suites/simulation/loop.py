"""simloop's loop and network, fitted to processes that die: directed cuts, resets, incarnations.

Of simloop come the asyncio surface, virtual time, transports and latencies. Changed here:

- Callbacks run in the order in which they were registered, as asyncio promises; what differs from
  seed to seed is time: latencies, faults, pauses.
- Every life of a process is a host of its own (`b1.2` is the second life of `b1`). A dead host
  never runs again, not even its `finally` blocks; its kernel resets connections, unless the machine
  went with it, which is silence until it is back.
- A cut has a direction. A stream's packets wait for its end, as retransmission has it.
- The trace is hashed as it grows instead of kept, and has no more than the loop's steps and what
  the simulation notes.
- The paths that every packet and callback takes are written out here, for speed.

The attributes with an underscore are those of simloop 0.2.2, which the lock pins.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

import simloop._net as simloop_net
from simloop import SimLoop, SimNetwork
from simloop._net import DRIVER, WIRE, _current_host
from simloop._transports import _SimStreamTransport

_BLOCK = 4096
_AT_ONCE = -1
UNWIND_S = 60.0


class Trace:
    """A hash over everything that happened, in order: the proof that two runs were one."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.events: list[tuple[object, ...]] = []
        self.count = 0

    def add(self, *event: object) -> None:
        self.events.append(event)

    def flush(self) -> None:
        """Hash what has gathered, if it is enough."""
        if len(self.events) >= _BLOCK:
            self._hash()

    def _hash(self) -> None:
        self.count += len(self.events)
        self._digest.update(repr(self.events).encode())
        self.events.clear()

    def hash(self) -> str:
        self._hash()
        return self._digest.hexdigest()

    def record(self, kind: str, when: float, seq: int, label: str, host: str = "") -> None:
        """Simloop's own events add nothing: a packet is a step of the loop when it arrives."""


class _Handle:
    """A callback that is due: what asyncio's own handles do, without what debugging needs."""

    __slots__ = ("args", "callback", "context", "is_cancelled")

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.args = ()

    def cancelled(self) -> bool:
        return self.is_cancelled


class _Timer(_Handle):
    __slots__ = ("_when",)

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.is_cancelled = False
        self._when = when

    def when(self) -> float:
        return self._when


class _Transport(_SimStreamTransport):
    """Buffers written together travel together."""

    def writelines(self, buffers: Any) -> None:
        self.write(b"".join(buffers))

    def write(self, data: Any) -> None:
        if self._eof_sent or self._closing or self._closed:
            raise RuntimeError("Cannot write to closing transport")
        if data:
            self._send("data", bytes(data))


simloop_net._SimStreamTransport = _Transport


class Network(SimNetwork):
    """Hosts by the name of their process; a name stands for its newest life."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._process: dict[str, str] = {DRIVER: DRIVER}
        self._lives: dict[str, list[str]] = {}
        self._blocked: set[tuple[str, str]] = set()
        self._slow: dict[tuple[str, str], tuple[float, float]] = {}
        self._silent: set[str] = set()
        self.dead: set[str] = set()
        self._held: list[Any] = []
        self._wire = loop.context_of(WIRE)
        super().__init__(loop)

    def born(self, process: str) -> str:
        """A new life of a process: the name of its host."""
        lives = self._lives.setdefault(process, [])
        name = f"{process}.{len(lives) + 1}"
        for earlier in lives:
            self._silent.discard(earlier)  # the machine is back: its kernel resets what is old
        lives.append(name)
        self._process[name] = process
        self.host(name)
        return name

    def kill(self, name: str, *, silent: bool) -> None:
        """SIGKILL, or with `silent` the machine's own death."""
        self.dead.add(name)
        if silent:
            self._silent.add(name)
        for listener in [key for key in self._listeners if key[0] == name]:
            del self._listeners[listener]
        for stream in [key for key in self._streams if key[1] == name]:
            transport = self._streams.pop(stream)
            if not silent:
                transport._send("rst")
        self._trace_fault(f"kill {name}")

    def cut(self, source: str, target: str) -> None:
        self._blocked.add((source, target))
        self._trace_fault(f"cut {source}>{target}")

    def slow(self, source: str, target: str, latency: tuple[float, float]) -> None:
        self._slow[source, target] = latency

    def join(self, source: str, target: str) -> None:
        """Undo `cut` and `slow`."""
        self._slow.pop((source, target), None)
        if (source, target) in self._blocked:
            self._blocked.discard((source, target))
            held, self._held = self._held, []
            for packet in held:
                self._transmit(packet)

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._blocked

    def latency(self, source: str, target: str) -> float:
        """One draw for a message outside of streams."""
        low, high = self._slow.get((source, target)) or self._default_latency
        return self._rng.uniform(low, high)

    def _trace_fault(self, what: str) -> None:
        self._loop.note("net", what)

    # what simloop asks itself

    def _transmit(self, packet: Any) -> None:
        ends = (self._process[packet.src], self._process[packet.dst])
        if ends in self._blocked:
            self._blackhole(packet)
            return
        low, high = self._slow.get(ends) or self._default_latency
        loop = self._loop
        delay = low + (high - low) * self._rng.random()
        loop.call_at(loop._now + delay, self._deliver, packet, context=self._wire)

    def _deliver(self, packet: Any) -> None:
        if self._blocked and self._is_cut(packet.src, packet.dst):
            self._blackhole(packet)
            return
        token = _current_host.set(packet.dst)
        try:
            self._dispatch_stream(packet)
        finally:
            _current_host.reset(token)

    def _trace(self, verb: str, packet: Any) -> None:
        """Nothing: see `Trace.record`."""

    def _is_cut(self, a: str, b: str) -> bool:
        blocked = self._blocked
        return bool(blocked) and (self._process[a], self._process[b]) in blocked

    def _resolve(self, host: Any) -> str:
        lives = self._lives.get(host)
        return lives[-1] if lives else super()._resolve(host)

    def _bind_address(self, host: str | None, port: int) -> tuple[str, int]:
        owner = _current_host.get()
        if host == self._process[owner]:
            return (owner, port)
        return super()._bind_address(host, port)

    def _dispatch_stream(self, packet: Any) -> None:
        key = (packet.conn, packet.dst, packet.dst_port)
        if packet.seq == _AT_ONCE:
            if (transport := self._streams.get(key)) is not None:
                transport._reset_arrived()
            elif (connect := self._pending.pop(packet.conn, None)) and not connect.fut.done():
                connect.fut.set_exception(ConnectionRefusedError("connection refused"))
        elif packet.dst in self.dead or (packet.kind == "data" and self._is_gone(key)):
            self._refuse(packet)
        else:
            super()._dispatch_stream(packet)

    def _is_gone(self, key: tuple[int, str, int]) -> bool:
        queue = self._inbound.get(key)
        return key not in self._streams and queue is not None and queue._next > 0

    def _refuse(self, packet: Any) -> None:
        """A kernel's answer to what belongs to no process (any more)."""
        if packet.kind in ("syn", "accept", "data") and packet.dst not in self._silent:
            self._send_stream(
                kind="rst",
                src=packet.dst,
                dst=packet.src,
                conn=packet.conn,
                seq=_AT_ONCE,
                src_port=packet.dst_port,
                dst_port=packet.src_port,
            )


class SimulatedLoop(SimLoop):
    """One seed's loop."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._ready: deque[_Handle] = deque()
        self._now: float
        self._timers: list[tuple[float, int, _Timer]]
        self.trace_of_all = Trace()
        self._events = self.trace_of_all.events
        self._recorder = self.trace_of_all
        self._network = Network(self)
        self._net = self._network
        self._dead = self._network.dead

    @property
    def network(self) -> Network:
        return self._network

    def note(self, *event: object) -> None:
        """Into the trace, with the time."""
        self.trace_of_all.add(self._now, *event)

    def context_of(self, host: str) -> Context:
        """To call something in the name of a host."""
        token = _current_host.set(host)
        try:
            return copy_context()
        finally:
            _current_host.reset(token)

    async def create_server(
        self, factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        return await super().create_server(factory, host, port)

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, context or copy_context())
        self._ready.append(handle)
        return handle  # type: ignore[return-value]

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + max(delay, 0.0), callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, context or copy_context())
        self._next_seq += 1
        heapq.heappush(self._timers, (when, self._next_seq, timer))
        return timer  # type: ignore[return-value]

    def _step(self) -> None:
        """Run the oldest callback that is due, unless its host is dead."""
        if not self._ready:
            self._advance_clock()
        handle = self._ready.popleft()
        if handle.is_cancelled:
            return
        context, callback = handle.context, handle.callback
        host = context.get(_current_host, DRIVER)
        if host in self._dead:
            return
        name = getattr(callback, "__qualname__", None) or type(callback).__name__
        self._events.append((self._now, host, name))
        try:
            context.run(callback, *handle.args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.call_exception_handler(
                {"message": f"Exception in callback {name}", "exception": error, "handle": handle}
            )

    def _advance_clock(self) -> None:
        self.trace_of_all.flush()
        timers, ready = self._timers, self._ready
        while timers and timers[0][2].is_cancelled:
            heapq.heappop(timers)
        if not timers:
            raise RuntimeError("nothing left to run: no callback is ready and no timer pending")
        now = self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= now:
            ready.append(heapq.heappop(timers)[2])

    def end(self) -> None:
        """Let every task unwind, those of the dead too, and close."""
        self._dead.clear()
        tasks = [task for some in self._network._tasks.values() for task in some if not task.done()]
        self.set_exception_handler(lambda *_: None)
        for task in tasks:
            task.cancel()
        if tasks:
            self._run_until_done(self.create_task(asyncio.wait(tasks, timeout=UNWIND_S)))
        self.close()

    def _run_until_done(self, task: asyncio.Task[Any]) -> None:
        """Without simloop's search for failed tasks that nobody awaits."""
        set_running: Callable[[Any], None] = asyncio._set_running_loop
        set_running(self)
        try:
            while not task.done():
                self._step()
        finally:
            set_running(None)
