"""Plays a run in a process of its own, so that no failure of the run ends the campaign."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import msgspec

from urteil.harness.hunt.host_pool import HostPool
from urteil.harness.hunt.job import Job, Row, row_of
from urteil.harness.hunt.shrinking import Report, Rule
from urteil.harness.reaper import start_reaper
from urteil.harness.run.judging import COLLECTING
from urteil.harness.scenario import load_facts
from urteil.harness.verify.result import load_result

DEADLINE_S = 900.0
END_S = 30.0
_LINES = 5
_playing: set[subprocess.Popen[str]] = set()


def play_run(
    job: Job,
    out: Path,
    *,
    engine: str = "auto",
    deadline_s: float = DEADLINE_S,
    where: Sequence[str] = (),
    on_played: Callable[[], object] = lambda: None,
) -> Row:
    """Play `job` into a folder under `out`. The row is UNKNOWN if the lab failed. `where` are the
    options of the runtime. `on_played` is called when nodes and clients have ended, and the run is
    still to be judged. The run ends with this process: in order on Ctrl-C, otherwise by its
    reaper."""
    start_reaper()
    out.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "urteil", *job.arguments(), *where]
    argv += ["--engine", engine, "--json"]
    began, at = time.monotonic(), time.strftime("%Y-%m-%d %H:%M:%S")
    process = subprocess.Popen(
        [*argv, "--out", str(out)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    _playing.add(process)
    output = _Output(process, on_played)
    try:
        process.wait(deadline_s)
        lines = output.lines()
    except subprocess.TimeoutExpired:
        _end_process(process)
        lines = [*output.lines(), f"the run did not end within {deadline_s:.0f} s"]
    except BaseException:
        _end_process(process)
        raise
    finally:
        _playing.discard(process)
    return _row(job, lines, time.monotonic() - began, at)


def play_runs(
    jobs: Iterable[Job], out: Path, *, engine: str = "auto"
) -> Generator[Row, None, None]:
    """Play the jobs in their order, each as `play_run`. A run begins when the one before it has
    only to be judged, and the one before that has been. Runs that still play when the iterator is
    closed are ended, by SIGKILL after END_S."""
    runs: list[Future[Row]] = []
    with ThreadPoolExecutor(2) as pool:
        try:
            for job in jobs:
                played = threading.Event()
                run = pool.submit(play_run, job, out, engine=engine, on_played=played.set)
                run.add_done_callback(partial(_set_event, played))
                runs.append(run)
                if len(runs) > 1:
                    yield runs.pop(0).result()
                played.wait()
            for run in runs:
                yield run.result()
        except BaseException:
            end_runs()
            if wait(runs, END_S).not_done:
                for process in list(_playing):
                    process.kill()
            raise


def _set_event(event: threading.Event, _run: object) -> None:
    event.set()


def play_on_hosts(job: Job, out: Path, *, pool: HostPool, engine: str = "auto") -> Row:
    """As `play_run`, on a group of hosts that is free."""
    with pool.group() as inventory:
        where = ("--runtime", "ssh", "--hosts", str(inventory))
        return play_run(job, out, engine=engine, where=where)


def end_runs() -> None:
    """End the runs that other threads play, in order."""
    for process in list(_playing):
        process.terminate()


class Shrinking(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `urteil shrink`."""

    run: Path
    guarantee: str
    sub_kind: str
    rule: Rule
    into: Path
    seconds: float

    def arguments(self) -> list[str]:
        return [
            "shrink", str(self.run), "--guarantee", self.guarantee, "--sub-kind", self.sub_kind,
            "--hits", str(self.rule.hits), "--tries", str(self.rule.tries),
            "--budget", str(self.seconds / 60), "--into", str(self.into),
        ]  # fmt: skip


def shrink(shrinking: Shrinking, *, engine: str = "auto") -> Report | None:
    """Shrink in a process of its own, with output in `shrink.log`. None when the lab failed."""
    start_reaper()
    shrinking.into.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "urteil", *shrinking.arguments(), "--engine", engine, "--json"]
    with (shrinking.into / "shrink.log").open("ab") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, text=True
        )
        try:
            process.wait(shrinking.seconds + DEADLINE_S)
        except BaseException as error:
            _end_process(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return None
    if process.returncode not in (0, 2):
        return None
    return msgspec.json.decode((shrinking.into / "shrink.json").read_bytes(), type=Report)


def prune(row: Row) -> Row:
    """The row without its folder."""
    if row.run:
        shutil.rmtree(row.run, ignore_errors=True)
    return msgspec.structs.replace(row, run="")


def _row(job: Job, output: list[str], seconds: float, at: str) -> Row:
    folders = [line.removeprefix("run ") for line in output if line.startswith("run /")]
    run = Path(folders[0]) if folders else None
    try:
        if run is None:
            raise FileNotFoundError("there is no run")
        result, facts = load_result(run), load_facts(run)
    except (OSError, msgspec.MsgspecError):
        reasons = [line for line in output if line.strip()][-_LINES:] or ["the lab said nothing"]
        return Row(
            job=job,
            verdict="UNKNOWN",
            seconds=round(seconds, 1),
            at=at,
            run="" if run is None else str(run),
            reasons=reasons,
            refused=run is None or not run.exists(),
        )
    return row_of(job, result, facts, seconds=seconds, at=at, run=run)


class _Output:
    """The standard error of a process, read while it runs."""

    def __init__(self, process: subprocess.Popen[str], on_played: Callable[[], object]) -> None:
        self._process = process
        self._on_played = on_played
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, name="output of a run", daemon=True)
        self._reader.start()

    def lines(self) -> list[str]:
        """All lines, after the end of the process; those so far if another process still holds its
        standard error."""
        self._reader.join(END_S)
        return list(self._lines)

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as output:
            for line in output:
                self._lines.append(line.rstrip("\n"))
                if line.startswith(COLLECTING):
                    self._on_played()


def _end_process(process: subprocess.Popen[str]) -> None:
    """End the process, in order if possible."""
    for end in (process.terminate, process.kill):
        end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
            return
