"""Wall clocks of brokers that faults can set: libfaketime, controlled by a file that it rereads.

Implements `chaos.controls.ClockControls`. Only the wall clock is false: monotonic clocks, times of
files and durations of waits stay true.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError

from urteil.chaos.observations import LabFailure
from urteil.harness.dependencies.faketime import faketime_library

TOPIC = "urteil-clocks"
FILE = "faketime"
FOLDER = "clock"
SLEEP_FILE = "sitecustomize.py"
"""Written at every start."""
CACHE_S = 1
SHARED = Path("/dev/shm")
ANSWER_S = 10.0
TRUE_SLEEP = """# libfaketime takes clock_nanosleep on the monotonic clock for a faked one.
import select
import time


def sleep(seconds):
    select.select([], [], [], seconds)


time.sleep = sleep
"""


def clock_env(node_dir: Path) -> dict[str, str]:
    """The environment of a broker with a clock of its own. Writes the files for it, set to true
    time."""
    folder = node_dir / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SLEEP_FILE).write_text(TRUE_SLEEP)
    _write(node_dir / FILE, "+0")
    remove_dead_clocks()
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "LD_PRELOAD": str(faketime_library()),
        "FAKETIME_TIMESTAMP_FILE": str(node_dir / FILE),
        "FAKETIME_CACHE_DURATION": str(CACHE_S),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # or a JVM's waits on the monotonic clock end at once
        "NO_FAKE_STAT": "1",
        "PYTHONPATH": os.pathsep.join(paths),
    }


def remove_dead_clocks() -> None:
    """Remove libfaketime's shared memory of processes that were killed.

    A later process with the same number would find it.
    """
    for file in SHARED.glob("*faketime_s[eh]m_*"):
        pid = file.name.rpartition("_")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            with contextlib.suppress(OSError):  # of another user, or just removed
                file.unlink()


class Clocks:
    """The clocks of all brokers, and what each one stamps on a record (LogAppendTime)."""

    def __init__(
        self,
        node_dir: Callable[[str], Path],
        bootstrap: Callable[[], Sequence[str]],
        brokers: Sequence[str],
    ) -> None:
        self._node_dir = node_dir
        self._bootstrap = bootstrap
        self._brokers = brokers
        self._lock = threading.Lock()
        self._made = False

    def set_offset(self, node: str, *, offset_s: float) -> None:
        _write(self._node_dir(node) / FILE, f"{offset_s:+.3f}s")

    def clock_offset_s(self, node: str) -> float:
        self._make()
        producer = KafkaProducer(
            bootstrap_servers=list(self._bootstrap()), acks=1, max_block_ms=ANSWER_S * 1000
        )
        try:
            partition = list(self._brokers).index(node)
            metadata = producer.send(TOPIC, value=b"now", partition=partition).get(ANSWER_S)
            return float(metadata.timestamp) / 1000 - time.time()
        except KafkaError as error:
            raise LabFailure(f"{node} reports no time: {error}") from error
        finally:
            producer.close(timeout=ANSWER_S)

    def _make(self) -> None:
        """A topic with a partition on every broker, whose records carry the brokers' time."""
        with self._lock:
            if self._made:
                return
            admin = KafkaAdminClient(bootstrap_servers=list(self._bootstrap()))
            places = {number: [int(broker[1:])] for number, broker in enumerate(self._brokers)}
            configs = {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "1"}
            try:
                topic = {TOPIC: {"assignments": places, "configs": configs}}
                admin.create_topics(topic, wait_for_metadata=True)
            except TopicAlreadyExistsError:
                pass
            except KafkaError as error:
                raise LabFailure(f"no topic to read brokers' times from: {error}") from error
            finally:
                admin.close()
            self._made = True


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.{threading.get_ident()}.part")
    part.write_text(text + "\n")
    part.replace(path)
