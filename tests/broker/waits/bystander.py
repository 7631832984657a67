"""A client that asks ApiVersions over and over while another client sends a large request.

What it waits for the broker is the time between its request and the answer, less the time in which
a thread of either process was ready to run and the machine ran other programs: so the figure is the
broker's own also where many tests share the processors.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.framing import RequestHeader, decode_response, encode_request
from urteil.broker.wire.messages import ApiVersionsRequest
from urteil.broker.wire.schema import Message

ANSWER_S = 300.0
LOCAL = "127.0.0.1"


class Client:
    """One connection: a request at a time."""

    def __init__(self, port: int, patience_s: float = ANSWER_S, host: str = LOCAL) -> None:
        self._socket = socket.create_connection((host, port), patience_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, key: ApiKey, version: int, request: Message) -> Message:
        """The answer. Raises ConnectionError when the broker closes the connection instead."""
        return decode_response(key, version, self.exchange(framed(key, version, request)))[1]

    def exchange(self, data: bytes) -> bytes:
        """One answer to what is sent, without its size."""
        self.send(data)
        return self.receive()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes:
        return self._read(int.from_bytes(self._read(4), "big"))

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = self._socket.recv(min(count - len(data), 1 << 20))
            if not more:
                raise ConnectionResetError("the broker closed the connection")
            data += more
        return bytes(data)


def framed(key: ApiKey, version: int, request: Message) -> bytes:
    """The request as it goes over the wire."""
    return b"".join(encode_request(RequestHeader(key, version, 7, "stranger"), request))


class Bystander:
    """What a client beside a large request saw: `answers` and, in s, its `longest_wait`."""

    def __init__(self, port: int, pid: int, host: str = LOCAL) -> None:
        self.answers = 0
        self.longest_wait_s = 0.0
        self.grown_bytes = 0
        self._port = port
        self._host = host
        self._broker = psutil.Process(pid)
        self._tasks = Path(f"/proc/{pid}/task")
        self._stopping = threading.Event()
        self._failure: Exception | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Ask while the block runs."""
        before = self._broker.memory_info().rss
        thread = threading.Thread(target=self._run, daemon=True)
        with Client(self._port, host=self._host) as client:
            self._client = client
            self._ask()
            thread.start()
            try:
                yield
            finally:
                self._stopping.set()
                thread.join()
        self.grown_bytes = max(self._peak_bytes - before, 0)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        self._peak_bytes = 0
        try:
            while not self._stopping.is_set():
                began, delayed = time.monotonic(), self._delayed_s()
                self._ask()
                wait = time.monotonic() - began - (self._delayed_s() - delayed)
                self.longest_wait_s = max(self.longest_wait_s, wait)
                self.answers += 1
                self._peak_bytes = max(self._peak_bytes, self._broker.memory_info().rss)
                time.sleep(0.002)
        except Exception as error:
            self._failure = error

    def _ask(self) -> None:
        self._client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

    def _delayed_s(self) -> float:
        """How long this thread and those of the broker were ready and did not run, till now."""
        files = [Path("/proc/thread-self/schedstat")]
        files += [task / "schedstat" for task in self._tasks.iterdir()]
        total = 0
        for file in files:
            try:
                total += int(file.read_text().split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue  # a thread that ended
        return total / 1e9
