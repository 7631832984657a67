"""A JVM with a program of compose/java-client, which executes commands and reports, a line each.

It runs in the client's own process group, so that a fault on the client affects it too.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from subprocess import PIPE, Popen

from confluent_kafka import KafkaError, KafkaException

from urteil.harness.dependencies.java_client import java_client

UNTOUCHED = 'trap "" TERM USR1 USR2; exec "$@"'
"""The signals of a client are not for its JVM, which ends with its standard input."""


class JvmExited(Exception):
    """The JVM exited although its client still runs."""


class Jvm:
    """The JVM of one client. `reports` are the program's lines other than outcomes of commands."""

    def __init__(self, main_class: str, arguments: Sequence[str]) -> None:
        argv = java_client(main_class, arguments)
        self._process = Popen(
            ["sh", "-c", UNTOUCHED, "sh", *argv],
            stdin=PIPE,
            stdout=PIPE,
            text=True,
        )
        self._outcomes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.reports: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def call(self, *words: object) -> None:
        """Execute a command. Raises KafkaException if it failed, JvmExited without an answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._exited() from None
        outcome = self._outcomes.get()
        if not outcome:
            raise self._exited()
        if (error := error_of(outcome)) is not None:
            raise KafkaException(error)

    def _exited(self) -> JvmExited:
        return JvmExited(f"the Java client exited with code {self._process.wait()}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.rstrip("\n").partition(" ")
            (self._outcomes if word == "done" else self.reports).put(rest)
        self._outcomes.put("")


def error_of(outcome: str) -> KafkaError | None:
    """The error of an outcome of the program, None for success."""
    code, _, rest = outcome.partition(" ")
    if code == "0":
        return None
    kind, _, reason = rest.partition(" ")
    return KafkaError(int(code), reason, kind == "fatal", kind == "retriable", kind == "abortable")
