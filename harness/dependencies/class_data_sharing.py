"""Java's class data sharing (JEP 350): what a server loads as it starts is laid out in a file, once
a machine, and from then on the server starts in half the time of a processor."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from urteil.harness.dependencies.installation import installed
from urteil.harness.dependencies.java import QUICK_START, describe_java, java, utf8_locale

ARCHIVE = "classes.jsa"
DEADLINE_S = 60.0
SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""A JVM that cannot use the file any more starts without it, and need not say so."""


def shared_classes(beside: Path, lay: Callable[[Path], None]) -> list[str]:
    """Options with which a JVM uses the file that `lay(folder)` leaves by `laying`; made the first
    time, in a folder next to `beside`. None where there can be no such file."""

    def attempt(folder: Path) -> None:  # an empty folder says from then on that there is none
        with contextlib.suppress(OSError):
            lay(folder)

    target = beside.with_name(f"{beside.name}-classes-{describe_java().version}")
    try:
        file = installed(target, attempt) / ARCHIVE
    except OSError:  # a folder that is not ours
        return []
    return [f"-XX:SharedArchiveFile={file}", *SILENT] if file.exists() else []


def laying(folder: Path) -> str:
    """The option of a JVM that leaves the file when it ends."""
    return f"-XX:ArchiveClassesAtExit={folder / ARCHIVE}"


@contextlib.contextmanager
def server(
    argv: Sequence[str], settings: Mapping[str, object], data: str, port: int
) -> Iterator[None]:
    """A JVM that listens on `port` of the loopback, with a file of its `settings`, `data` that of
    where it keeps its own; it has ended of itself when the block is left. TimeoutError when it did
    not listen, or end."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "server.properties"
        told = {**settings, data: Path(scratch) / "data"}
        file.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        process = subprocess.Popen(
            [java(), *QUICK_START, *argv, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **utf8_locale()},
        )
        try:
            _await_listening(process, port)
            yield
            process.terminate()
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{argv[-1]} did not end") from error
        finally:
            process.kill()
            process.wait()


def _await_listening(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(ConnectionError):
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
