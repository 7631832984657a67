"""Java's class data sharing (JEP 350) for servers that start often.

The classes of a starting server are archived in a file, once a machine. Later starts need half the
processor time.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from urteil.chaos.waiting import until
from urteil.harness.dependencies.installation import install_once
from urteil.harness.dependencies.java import QUICK_START, describe_java, java, utf8_locale

ARCHIVE = "classes.jsa"
DEADLINE_S, POLL_S = 60.0, 0.05
SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""A JVM that cannot use the archive starts without it, and without a message."""


def shared_classes(beside: Path, lay: Callable[[Path], None]) -> list[str]:
    """JVM options that use the archive which `lay(folder)` creates by `laying`.

    The archive is created on first use, in a folder next to `beside`. Empty where it is impossible.
    """

    def attempt(folder: Path) -> None:  # an empty folder records that there is no archive
        with contextlib.suppress(OSError):
            lay(folder)

    target = beside.with_name(f"{beside.name}-classes-{describe_java().version}")
    try:
        file = install_once(target, attempt) / ARCHIVE
    except OSError:  # a folder of another user
        return []
    return use_archive(str(file)) if file.exists() else []


def use_archive(file: str) -> list[str]:
    """The JVM options that use the archive if it fits. The JVM and the class path must be those of
    its creation, each jar with its path as given, its size and its time of change."""
    return [f"-XX:SharedArchiveFile={file}", *SILENT]


def archive_option(folder: Path) -> str:
    """The JVM option that creates the archive at exit."""
    return f"-XX:ArchiveClassesAtExit={folder / ARCHIVE}"


@contextlib.contextmanager
def temporary_server(
    argv: Sequence[str],
    settings: Mapping[str, object],
    data: str,
    port: int,
    *,
    prepare: Callable[[Path], None] = lambda _folder: None,
    cwd: Path | None = None,
) -> Iterator[None]:
    """A JVM that listens on loopback port `port`, with a file of its `settings`, until the block
    ends. It runs in the folder `cwd`.

    `data` is the setting of its data folder, which `prepare` fills before the start. Raises
    TimeoutError when it does not listen, or does not end.
    """
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "server.properties"
        properties = {**settings, data: Path(scratch) / "data"}
        prepare(Path(scratch) / "data")
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        process = subprocess.Popen(
            [java(), *QUICK_START, *argv, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **utf8_locale()},
            cwd=cwd,
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
    def is_listening() -> bool:
        with contextlib.suppress(ConnectionError):
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return True
        return False

    def is_over(is_listening: bool) -> bool:
        return is_listening or process.poll() is not None

    if not until(is_listening, is_over, deadline_s=DEADLINE_S, poll_s=POLL_S):
        raise TimeoutError(f"no process listens on port {port}")


def free_port() -> int:
    """A port of the loopback on which no process listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
