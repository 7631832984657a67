"""The application of a run: starts its processes, awaits what it processes, reads its outputs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from operator import not_
from pathlib import Path

from urteil.chaos.observations import LabFailure
from urteil.chaos.similar_names import suggest
from urteil.chaos.waiting import until
from urteil.harness.clients.applications.declaration import (
    ADMIN_LOG,
    Application,
    AppProcess,
    Context,
)
from urteil.harness.clients.applications.progress import PATIENCE_S
from urteil.harness.clients.processes import Clients
from urteil.harness.clients.spec import base_name
from urteil.harness.evidence.outputs import write_outputs

ENDED = "it ended by itself"
READY_POLL_S = 0.2
PROGRESS_POLL_S = 0.5
LOG_LINES = 12
LOG_TAIL_BYTES = 20_000


class RunningApplication:
    """One application in one run. The workload registers and ends its processes."""

    def __init__(self, application: Application, context: Context, clients: Clients) -> None:
        self.application = application
        self.context = context
        self._clients = clients
        self._surroundings = ExitStack()
        self._sessions: dict[str, str] = {}

    def enter_surroundings(self) -> None:
        """Start what must stand before the processes."""
        if self.application.surroundings is not None:
            self._surroundings.enter_context(self.application.surroundings(self.context))

    def start_process(self, name: str) -> None:
        """Start a session of a process. `name` is the session's, such as `a1.2`."""
        process = self.application.process(name)
        self._sessions[base_name(name)] = name
        command = process.command(self.context, name)
        self._clients.run(name, command, is_finite=process.is_finite)

    def await_ready(self) -> None:
        """Wait until every process is ready, then take the application's last step of its start.

        LabFailure, with the log's last lines, if a process ends or is not ready in time.
        """
        for process in self.application.processes:
            for name in process.names(self.context.scenario):
                self._await_process(process, name)
        self.application.submit(self.context)

    def _await_process(self, process: AppProcess, name: str) -> None:
        def read() -> str:
            missing = process.missing(self.context, name)
            return missing if self._clients.running_clients([name]) else ENDED

        missing = until(
            read,
            lambda text: text in ("", ENDED),
            deadline_s=process.ready_s,
            poll_s=READY_POLL_S,
        )
        if missing:
            raise LabFailure(
                f"application {self.application.name}: {name} did not become ready in "
                f"{process.ready_s:g} s: {missing}{log_tail(self.context.log(name))}"
            )

    def await_processed(
        self, deadline_s: float, restart: Callable[[str], object] = lambda _name: None
    ) -> str:
        """Wait until the input is processed, or for `PATIENCE_S` without progress. Returns what
        remains as a phrase, empty if nothing does; the verdict judges it.

        The patience begins when the last sessions are ready: a process makes no progress while it
        starts again. `restart` ends a session and starts the next one; it is called for a session
        with a failure that it does not recover from.
        """
        self._await_sessions()

        def read() -> object:
            remaining = self.application.remaining(self.context)
            if remaining and self._restart_failed(restart):
                self._await_sessions()
            return remaining

        remaining = until(
            read,
            not_,
            deadline_s=deadline_s,
            poll_s=PROGRESS_POLL_S,
            patience_s=PATIENCE_S,
        )
        if isinstance(remaining, set | frozenset):
            return f"{len(remaining)} records" if remaining else ""
        return str(remaining) if remaining else ""

    def _running_sessions(self) -> list[str]:
        return self._clients.running_clients(list(self._sessions.values()))

    def _await_sessions(self) -> None:
        """Wait until the last sessions are ready, or for as long as each may take."""
        for name in self._running_sessions():
            process = self.application.process(name)
            until(
                partial(process.missing, self.context, name),
                not_,
                deadline_s=process.ready_s,
                poll_s=READY_POLL_S,
            )

    def _restart_failed(self, restart: Callable[[str], object]) -> bool:
        """Restart the sessions with a failure, and log each restart. Returns whether there are
        any."""
        failures = {
            name: failure
            for name in self._running_sessions()
            if (failure := self.application.process(name).failure(self.context, name))
        }
        for name, failure in failures.items():
            with (self.context.folder / ADMIN_LOG).open("a") as log:
                log.write(f"restarted {name}: {failure}\n")
            restart(name)
        return bool(failures)

    def save_outputs(self) -> str:
        """Read what the ended application wrote, and write it into the run's folder. Outputs that
        cannot be read are written nowhere: returns the sentence that says why, with the end of each
        log, otherwise an empty text."""
        application = self.application
        try:
            application.finish(self.context)
            if application.outputs is not None:
                rows = application.outputs(self.context)
                write_outputs(self.context.run_dir, application.name, rows)
        except Exception as failure:
            return (
                f"the outputs of application {application.name} cannot be read: "
                f"{type(failure).__name__}: {failure}{self._log_tails()}"
            )
        return ""

    def _log_tails(self) -> str:
        names = self.application.names(self.context.scenario)
        return "".join(log_tail(self.context.log(name)) for name in names)

    def operate(self, act: str) -> str:
        """Do an act of the application's operator. Returns what confirms it; LabFailure for an
        unknown act."""
        acts = self.application.acts
        if act not in acts:
            raise LabFailure(
                f"application {self.application.name} has no act {act!r}; {suggest(act, acts)}"
            )
        return acts[act](self.context)

    def leader(self, running: Sequence[str]) -> str | None:
        """The process that leads the application's group; None if none is known to."""
        find = self.application.leader
        return None if find is None or not running else find(self.context, running)

    def empty_stores(self, name: str) -> list[Path]:
        """Remove all files in the stores of a dead process. Returns the removed files."""
        folder, removed = self.context.process_folder(name), []
        for store in self.application.process(name).stores:
            removed += [path for path in (folder / store).rglob("*") if path.is_file()]
            shutil.rmtree(folder / store, ignore_errors=True)
        return removed

    def close(self) -> None:
        """End what stands beside the processes, and remove the temporary files of all."""
        self._surroundings.close()
        for name in self.application.names(self.context.scenario):
            shutil.rmtree(self.context.temporary(name), ignore_errors=True)


def log_tail(log: Path) -> str:
    """The last lines of a log as the end of a sentence; empty without any."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()[-LOG_LINES:]
    return "; its log ends:\n" + "\n".join(lines) if lines else ""
