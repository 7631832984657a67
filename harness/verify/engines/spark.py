"""Spark sessions for verification: quiet, on loopback only, sized for the run."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.dependencies.java import utf8_locale
from urteil.harness.dependencies.pyspark import require_pyspark
from urteil.harness.stack_dumps import DumpSource
from urteil.harness.verify.engines import comet

LARGE_ROWS = 200_000
"""From this many rows of sends, reads and replicas on, Spark uses partitions and compiled plans."""
LONG_ROWS = 20_000_000
"""From this many rows on, the JVM's second compiler saves Spark's own operators more time than it
takes."""
HEAP = "2g"
PARTITIONS, PARTITION_ROWS = 32, 1_000_000
"""The least number of shuffle partitions of a large run, and the rows of evidence for each one."""

_FIRST_COMPILER = " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""The first compiler alone. Its default code cache of 48 MB is too small for all guarantees."""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Hundreds of sorts and broadcasts allocate at least one page each.
    "spark.buffer.pageSize": "2m",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.log.level": "ERROR",
}
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark %p %c{1}: %m%n
"""
_SCRATCH = "urteil-spark-"
_OUTPUT: Path | None = None
"""The file with the output of Spark's driver."""
NICE = 10


def start(
    master: str | None = None, *, memory: str | None = None, rows: int = 0, nice: int = 0
) -> Any:
    """Start a session on `master` (default `local[2]`) for a run with `rows` rows of evidence.

    Its heap is `memory`, else URTEIL_SPARK_MEMORY, else 2g, or 1g with native operators (`comet`),
    which a large run on this machine uses if Comet can be installed. A process has one session: a
    second call returns it. The JVM uses its first compiler alone, except for LONG_ROWS without
    native operators: in shorter runs the second compiler takes more time than it saves. A JVM that
    this call starts has the niceness `nice`.

    Raises RuntimeError with the JVM's output when it does not start, and MissingDependency without
    Java or PySpark.
    """
    require_pyspark()
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    logging.getLogger("SQLQueryContextLogger").disabled = True
    if SparkContext._active_spark_context is None:
        folder = _scratch()
        master = master or "local[2]"
        _find_java()
        os.environ.update(utf8_locale())
        if _is_here(master):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings = _settings(folder, master, memory, rows)
        conf = SparkConf().setAll(list(settings.items()))
        gateway = SparkContext._gateway
        try:
            global _OUTPUT
            _OUTPUT = folder / "jvm.log"
            with _OUTPUT.open("wb") as output, comet.one_arena():
                if gateway is None:
                    gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
                    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
                    if nice:
                        renice(_threads(), nice)
            SparkContext(conf=conf, gateway=gateway)
        except Exception as failure:
            text = (folder / "jvm.log").read_text(errors="replace")[-1000:]
            raise RuntimeError(f"Spark did not start: {failure}\n{text}") from failure
    return SparkSession.builder.getOrCreate()


def dump_sources() -> list[DumpSource]:
    """Spark's driver as a source of stack dumps, if this process has started one."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    output = _OUTPUT
    if process is None or output is None:
        return []
    return [
        DumpSource(name="spark", pid=process.pid, output=lambda: output.read_text(errors="replace"))
    ]


def abandon(session: Any) -> None:
    """Kill the driver of a session that does not respond. Calls that wait for it fail, and the next
    session starts another driver."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    process = getattr(session.sparkContext._gateway, "proc", None)
    if process is None:
        session.sparkContext.cancelAllJobs()  # a driver that the caller started
        return
    process.kill()
    process.wait()
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _scratch() -> Path:
    """Create a temporary folder of this process. Removes the folders of killed processes."""
    for old in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        owner = old.name.removeprefix(_SCRATCH).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _settings(folder: Path, master: str, memory: str | None, rows: int) -> dict[str, str]:
    quiet = folder / "log4j2.properties"
    quiet.write_text(_QUIET)
    options = f"-Dlog4j2.configurationFile={quiet} -Djava.io.tmpdir={folder} -XX:+UseSerialGC"
    operators = _native(master, rows)
    native = comet.are_in(operators)
    options += _FIRST_COMPILER if native or rows < LONG_ROWS else ""
    heap = memory or os.environ.get("URTEIL_SPARK_MEMORY") or (comet.HEAP if native else HEAP)
    return {
        **_SETTINGS,
        **(_LOOPBACK if _is_here(master) else {}),
        **operators,
        "spark.master": master,
        "spark.app.name": "urteil",
        "spark.driver.memory": heap,
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": options,
    }


def _native(master: str, rows: int) -> dict[str, str]:
    """Settings of native operators, or the reason why Comet is missing; none for small runs and for
    masters on other machines."""
    if rows < LARGE_ROWS or not master.startswith("local"):
        return {}
    from urteil.harness.dependencies.comet import comet_jar

    try:
        return comet.settings(comet_jar())
    except MissingDependency as missing:
        return comet.settings_without_comet(str(missing))


def versions(session: Any) -> dict[str, str]:
    """The versions of Spark and of its native operators, or why a large run has none."""
    return {"spark": session.version} | comet.versions(session)


def _find_java() -> None:
    """Set JAVA_HOME to the Java of the lab's other parts."""
    from urteil.harness.dependencies.java import java

    home = Path(java()).resolve().parent.parent
    os.environ.setdefault("JAVA_HOME", str(home))


def _is_here(master: str) -> bool:
    """Whether all of Spark runs on this machine, so that it can listen on loopback only."""
    return master.startswith(("local", "spark://127.", "spark://localhost:"))


def fit(session: Any, *, rows: int) -> None:
    """Configure the session for the size of a run."""
    large = rows >= LARGE_ROWS
    small = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    wide = {
        "spark.sql.shuffle.partitions": str(max(PARTITIONS, rows // PARTITION_ROWS)),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
        "spark.sql.autoBroadcastJoinThreshold": "1048576",
    }
    for name, value in (wide if large else small).items():
        session.conf.set(name, value)
    compile_plans(session, large)


def compile_plans(session: Any, on: bool) -> None:
    """Compile plans to bytecode, or interpret them, which is faster for few rows."""
    session.conf.set("spark.sql.codegen.wholeStage", "true" if on else "false")
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if on else "NO_CODEGEN")


class Warming:
    """Starts Spark in the background while a load runs; `session()` waits for it.

    Its JVM has a lower priority than the cluster under test. It judges a tiny synthetic run, so
    that classes are loaded and hot methods compiled before the real judgement. The thread has the
    ordinary priority: a thread of lower priority holds the interpreter's lock while it waits for a
    busy processor, and blocks all other threads of the lab.
    """

    def __init__(self, master: str | None = None) -> None:
        self._master = master
        self._session: Any = None
        self._failure: Exception | None = None
        self._needed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-warm", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._session = start(self._master, nice=NICE)
            from urteil.harness.verify.engines.rehearsal import rehearse

            rehearse(self._session.newSession(), self._needed)
        except Exception as failure:
            self._failure = failure

    def session(self, timeout_s: float = 240.0) -> Any:
        """Wait for the session, at ordinary priority from now on. Raises RuntimeError when it did
        not start."""
        self._needed.set()
        deadline = time.monotonic() + timeout_s
        while self._thread.is_alive() and time.monotonic() < deadline:
            renice(_threads(), 0)
            self._thread.join(0.2)
        if self._session is None:
            raise RuntimeError(str(self._failure or f"Spark did not start in {timeout_s:g} s"))
        renice(_threads(), 0)
        return self._session

    def stop(self) -> None:
        """Stop the session. One that is still starting ends with this process. A JVM that has ended
        (Ctrl-C reaches it too) is ignored."""
        self._needed.set()
        if not self._thread.is_alive() and self._session is not None:
            from py4j.protocol import Py4JError

            with contextlib.suppress(OSError, Py4JError):
                self._session.stop()


def renice(threads: Iterable[int], nice: int) -> None:
    """Set the niceness of Linux threads. Missing permission is ignored."""
    for thread in threads:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def _threads() -> list[int]:
    """The threads of Spark's JVM, if this process started it."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return []
    folder = Path(f"/proc/{process.pid}/task")
    return [int(task.name) for task in folder.iterdir()] if folder.exists() else []


def warm(master: str | None = None) -> Warming:
    """Start Spark in the background and rehearse."""
    return Warming(master)
