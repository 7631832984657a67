"""A JVM with a program of compose/java-client, which executes commands and reports, a line each.

It runs in the client's own process group, so that a fault on the client affects it too.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from subprocess import PIPE, Popen

from confluent_kafka import KafkaError, KafkaException

from urteil.harness.child_process import await_exit
from urteil.harness.dependencies.java_client import java_client

EXIT_S = 10.0
TICK_S = 1.0
ANSWER_TICKS = 120
"""The longest wait for an answer. The programs limit their calls to far less."""

UNTOUCHED = 'trap "" TERM USR1 USR2; exec "$@"'
"""The signals of a client are not for its JVM, which ends with its standard input."""


class JvmExited(Exception):
    """The JVM exited although its client still runs."""


class JvmHung(Exception):
    """The JVM did not answer a command in time and was killed."""


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
        self._pending: tuple[object, ...] | None = None
        self._is_hung = False
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    def call(self, *words: object) -> None:
        """Execute a command. Raises KafkaException if it failed, JvmExited or JvmHung without an
        answer."""
        self._pending = words
        outcome = self._execute(" ".join(map(str, words)))
        self._pending = None
        if not outcome:
            raise self._failure(words[0])
        if (error := error_of(outcome)) is not None:
            raise KafkaException(error)

    def _execute(self, line: str) -> str:
        """The outcome of a command; empty if the JVM ends before."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._outcomes.get()

    def _failure(self, command: object) -> JvmExited | JvmHung:
        code = await_exit(self._process, deadline_s=EXIT_S)
        if self._is_hung:
            limit_s = ANSWER_TICKS * TICK_S
            return JvmHung(f"the Java client did not answer `{command}` within {limit_s:g} s")
        return JvmExited(f"the Java client exited with code {code}")

    def _watch(self) -> None:
        """Kill the JVM when one command lasts too long. Ticks are counted, not seconds: a fault
        that pauses the client and its JVM costs one tick, however long it lasts."""
        command: tuple[object, ...] | None = None
        ticking, ticks = threading.Event(), 0
        while self._process.poll() is None:
            ticking.wait(TICK_S)
            if self._pending is None or self._pending is not command:
                command, ticks = self._pending, 0
                continue
            ticks += 1
            if ticks == ANSWER_TICKS:
                self._is_hung = True
                self._process.kill()

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
