"""The lab's connection to a host: commands, parts, and the agent, by ssh.

asyncssh runs on an event loop in a thread of its own. The methods of a connection block and may be
called from any thread. Every failure is a LabFailure with one sentence: the host and the remedy.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shlex
import threading
import time
from collections.abc import Container, Coroutine, Iterable, Sequence
from concurrent.futures import TimeoutError as TooLate
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from urteil.chaos.observations import LabFailure
from urteil.harness.dependencies.asyncssh import require_asyncssh
from urteil.harness.runtimes.hosts.inventory import Host
from urteil.harness.runtimes.hosts.messages import LENGTH_BYTES, Request, Response, encode
from urteil.harness.runtimes.hosts.parts import Part

T = TypeVar("T")
CONNECT_S = 10.0
COMMAND_S = 30.0
SEND_S = 600.0
CALL_S = 30.0
KEEPALIVE_S = 5
CIPHERS = ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr"]
"""Ciphers with hardware support. Archives are compressed already."""
RECEIVE = """
set -e
cd {folder}/parts
find . -maxdepth 1 -name '.part.*' -mmin +60 -exec rm -rf {{}} +
aside=$(mktemp -d .part.XXXXXX)
trap 'rm -rf "$aside"' EXIT
cat > "$aside/archive"
if ! echo "{sha256}  $aside/archive" | sha256sum --check --status; then
    echo damaged on its way; exit 1
fi
mkdir "$aside/content"
tar -xzf "$aside/archive" -C "$aside/content"
mv -T "$aside/content" {name} 2>/dev/null || test -d {name}
"""
"""Unpacks an archive from standard input. The part appears atomically, and two labs may send it at
once."""


class HostFailure(LabFailure):
    """A host cannot do what the lab requires."""


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="ssh").start()

    def run(self, work: Coroutine[Any, Any, T], deadline_s: float) -> T:
        """Raises TimeoutError after the deadline."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(deadline_s)
        except TooLate:
            future.cancel()
            raise TimeoutError(f"no answer within {deadline_s:.0f} s") from None


_loop_lock = threading.Lock()
_loops: list[_Loop] = []


def _loop() -> _Loop:
    with _loop_lock:
        if not _loops:
            _loops.append(_Loop())
        return _loops[0]


class HostConnection:
    """One ssh connection. `open` first, then commands and parts, then `start_agent` and calls."""

    def __init__(self, host: Host) -> None:
        require_asyncssh()
        self.host = host
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._connection: Any = None
        self._agent: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._lost = ""

    def open(self) -> None:
        """Raises HostFailure when the host does not answer, is unknown, or rejects the key."""
        import asyncssh

        host = self.host
        try:
            self._connection = _loop().run(self._connect(), CONNECT_S)
        except asyncssh.HostKeyNotVerifiable:
            file = host.known_hosts or "~/.ssh/known_hosts"
            scan = f"ssh-keyscan -p {host.port} {host.address} >> {file}"
            raise HostFailure(f"{host} is not known: check its key, then `{scan}`") from None
        except asyncssh.PermissionDenied:
            key = host.key or "the user's own"
            raise HostFailure(
                f"{host} rejects the key ({key}): add its public half to authorized_keys of "
                f"{host.user} there, or name another key"
            ) from None
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
            raise HostFailure(f"the key of {host} cannot be used: {error}") from None
        except (OSError, asyncssh.Error) as error:
            number = getattr(error, "errno", None)
            reason = os.strerror(number) if number else str(error)
            raise HostFailure(
                f"{host} does not answer: {reason}; start its ssh server, or take it out of the "
                "inventory"
            ) from None

    async def _connect(self) -> Any:
        import asyncssh

        host = self.host
        options: dict[str, Any] = {"compression_algs": ["none"], "encryption_algs": CIPHERS}
        if host.key:
            options["client_keys"] = [host.key]
        if host.known_hosts:
            options["known_hosts"] = host.known_hosts
        return await asyncssh.connect(
            host.address,
            host.port,
            username=host.user,
            keepalive_interval=KEEPALIVE_S,
            **options,
        )

    def run(
        self, command: str, *, deadline_s: float = COMMAND_S, source: Path | None = None
    ) -> str:
        """The output of a shell command, with the file as its input. Raises HostFailure with its
        last line of errors."""
        import asyncssh

        async def run() -> Any:
            stdin = asyncssh.DEVNULL if source is None else str(source)
            return await self._connection.run(command, stdin=stdin, encoding=None)

        try:
            done = _loop().run(run(), deadline_s)
        except (OSError, asyncssh.Error) as error:
            raise self._failure(str(error)) from None
        if done.exit_status != 0:
            lines = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
            raise HostFailure(lines[-1] if lines else f"exit status {done.exit_status}")
        return bytes(done.stdout).decode(errors="replace")

    def probe(
        self, script: str, arguments: Sequence[str], samples: int
    ) -> tuple[bytes, list[tuple[int, int, int]]]:
        """The first line that a Python script prints, and the integers with which it answers lines:
        each with the wall clock before and after, in ns. Raises HostFailure if it ends before."""
        import asyncssh

        command = shlex.join([self.host.python, "-c", script, *arguments])

        async def probe() -> tuple[bytes, list[tuple[int, int, int]]]:
            process = await self._connection.create_process(command, encoding=None)
            first: bytes = await process.stdout.readline()
            answers = []
            for _ in range(samples if first else 0):
                began = time.time_ns()
                process.stdin.write(b"\n")
                answer = await process.stdout.readline()
                answers.append((began, int(answer), time.time_ns()))
            process.stdin.write_eof()
            errors: bytes = await process.stderr.read()
            if not first:
                lines = errors.decode(errors="replace").strip().splitlines()
                raise HostFailure(lines[-1] if lines else "it printed nothing")
            return first, answers

        try:
            return _loop().run(probe(), COMMAND_S)
        except (OSError, ValueError, asyncssh.Error) as error:
            raise HostFailure(str(error)) from None

    def send_parts(self, parts: Iterable[Part], known: Container[str] = ()) -> list[str]:
        """Send the parts that the host lacks; it has the `known` ones. Returns their names. Raises
        HostFailure."""
        parts = [part for part in parts if part.name not in known]
        if not parts:
            return []
        folder = shlex.quote(self.host.folder)
        try:
            present = set(self.run(f"mkdir -p {folder}/parts && ls {folder}/parts").split())
        except HostFailure as failure:
            raise HostFailure(
                f"{self.host} has no usable folder {self.host.folder}: {failure}; name one that "
                f"{self.host.user} can write"
            ) from None
        missing = [part for part in parts if part.name not in present]
        for part in missing:
            command = RECEIVE.format(folder=folder, sha256=part.sha256, name=part.name)
            try:
                self.run(command, deadline_s=SEND_S, source=part.archive)
            except HostFailure as failure:
                raise HostFailure(
                    f"{self.host} did not get {part.name}: {failure}; look for free disk in "
                    f"{self.host.folder} and for tar, gzip and sha256sum there"
                ) from None
        return [part.name for part in missing]

    def start_agent(self, parts: Iterable[Part]) -> None:
        """Start the agent with these parts on its Python path."""
        host = self.host
        path = ":".join(f"{host.folder}/parts/{part.name}" for part in parts)
        words = ["env", f"PYTHONPATH={path}", "PYTHONNOUSERSITE=1", host.python, "-P", "-m"]
        words += ["urteil.harness.runtimes.hosts.agent", host.folder]
        _loop().run(self._start_agent(f"exec {shlex.join(words)}"), COMMAND_S)

    async def _start_agent(self, command: str) -> None:
        self._agent = await self._connection.create_process(command, encoding=None)
        self._reader = asyncio.create_task(self._read_answers())

    async def _read_answers(self) -> None:
        import asyncssh

        reason = "its agent ended"
        try:
            while True:
                length = await self._agent.stdout.readexactly(LENGTH_BYTES)
                content = await self._agent.stdout.readexactly(int.from_bytes(length, "big"))
                response = msgspec.msgpack.decode(content, type=Response)
                waiting = self._waiting.pop(response.number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(response)
        except asyncio.IncompleteReadError:
            with contextlib.suppress(TimeoutError, asyncssh.Error, OSError):
                errors = await asyncio.wait_for(self._agent.stderr.read(), 1.0)
                last = errors.decode(errors="replace").strip().splitlines()[-1:]
                reason = ": ".join([reason, *last])
        except (OSError, asyncssh.Error) as error:
            reason = str(error)
        finally:
            self._lost = reason
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ConnectionError(reason))

    def call(self, operation: str, *arguments: Any, deadline_s: float = CALL_S) -> Any:
        """The value of an operation of the agent. Raises LabFailure with the agent's reason, and
        HostFailure when the connection is lost."""
        import asyncssh

        try:
            response = _loop().run(self._call(operation, arguments), deadline_s)
        except (OSError, asyncssh.Error) as error:
            raise self._failure(str(error)) from None
        if response.failure:
            raise LabFailure(f"{response.failure} (on {self.host.name})")
        return response.value

    async def _call(self, operation: str, arguments: tuple[Any, ...]) -> Response:
        if self._lost:
            raise ConnectionError(self._lost)
        request = Request(next(self._numbers), operation, list(arguments))
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting[request.number] = future
        try:
            self._agent.stdin.write(encode(request))
            await self._agent.stdin.drain()
            return await future
        finally:
            self._waiting.pop(request.number, None)

    def close(self) -> None:
        """End the agent, and with it everything of the run on the host. Repeatable."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                _loop().run(self._close(connection), COMMAND_S)

    async def _close(self, connection: Any) -> None:
        if self._agent is not None:
            self._agent.stdin.write_eof()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._agent.wait_closed(), 5.0)
        connection.close()
        await connection.wait_closed()

    def _failure(self, reason: str) -> HostFailure:
        return HostFailure(
            f"{self.host} is lost: {reason or 'no connection'}; what ran there has ended, and "
            "its evidence is gone: look whether it runs and its network holds, then run again"
        )
