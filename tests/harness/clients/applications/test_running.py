"""Processes of an application: start, readiness, progress, stores, outputs; without a cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure, NodeState
from urteil.harness.clients.applications import application_of, applications
from urteil.harness.clients.applications.declaration import Application, AppProcess, Context
from urteil.harness.clients.applications.progress import last_logged
from urteil.harness.clients.applications.running import RunningApplication, log_tail
from urteil.harness.clients.client_controls import WorkloadClients
from urteil.harness.clients.processes import Clients, spawn_process
from urteil.harness.evidence.outputs import FILE, Output
from urteil.harness.scenario import Scenario, WorkloadSpec

Open = Callable[..., RunningApplication]


@pytest.fixture
def open_app(tmp_path: Path) -> Iterator[Open]:
    """Makes a running application whose processes run a shell command."""
    clients = Clients(tmp_path, spawn_process)

    def make(
        script: str,
        missing: Callable[[Context, str], str] | None = None,
        *,
        ready_s: float = 20.0,
        is_finite: bool = False,
        failure: Callable[[Context, str], str] = lambda _context, _name: "",
        **fields: object,
    ) -> RunningApplication:
        process = AppProcess(
            command=lambda context, name: [
                *("env", f"TMP={context.run_dir}/application/{name}/tmp", "/bin/sh", "-c", script),
            ],
            ready_s=ready_s,
            is_finite=is_finite,
            failure=failure,
            stores=("state",),
        )
        if missing is not None:
            process = dataclasses.replace(process, missing=missing)
        application = Application(
            name="shell", about="", processes=(process,), remaining=lambda _context: 0
        )
        context = Context(
            scenario=Scenario(name="test"), run="r", run_dir=tmp_path, bootstrap=("127.0.0.1:1",),
            second_bootstrap=(), topics=(), journals=lambda _kind: [],
        )  # fmt: skip
        running = RunningApplication(dataclasses.replace(application, **fields), context, clients)
        running.start_process("a1")
        return running

    yield make
    clients.kill_all()


def logged(word: str) -> Callable[[Context, str], str]:
    def missing(context: Context, name: str) -> str:
        return "" if word in context.log(name).read_text() else f"it did not log {word}"

    return missing


def test_last_start_step_follows_readiness(open_app: Open) -> None:
    steps: list[str] = []
    running = open_app("echo up; sleep 60", submit=lambda context: steps.append(context.group))
    running.await_ready()
    assert steps == ["urteil-group"]


def test_process_exit_during_start_is_reported_with_its_log(open_app: Open) -> None:
    running = open_app("echo first; echo no such topic >&2; exit 7", missing=logged("up"))
    with pytest.raises(LabFailure, match=r"(?s)shell: a1 did not.*ended.*first\nno such topic"):
        running.await_ready()


def test_process_that_never_becomes_ready_is_reported_with_its_log(open_app: Open) -> None:
    script = "echo waiting for a database; sleep 60"
    running = open_app(script, missing=logged("up"), ready_s=2.0)
    with pytest.raises(LabFailure, match=r"(?s)it did not log up; .*waiting for a database"):
        running.await_ready()


def test_unexpected_process_exit_is_a_failure_with_its_log(open_app: Open) -> None:
    running = open_app("echo giving up; exit 3")
    until(lambda: not running._clients.running_clients(["a1"]))
    tails = {"a1": log_tail(running.context.log("a1"))}
    (failure,) = running._clients.failures(tails)
    assert "a1 ended with exit code 3" in failure
    assert failure.endswith("its log ends:\ngiving up")


def test_only_state_stores_of_a_dead_process_are_emptied(open_app: Open, tmp_path: Path) -> None:
    running = open_app("sleep 60")
    folder = running.context.process_folder("a1")
    (folder / "state" / "0_1").mkdir(parents=True)
    (folder / "state" / "0_1" / "data").write_text("x")
    (folder / "settings").write_text("x")
    controls = WorkloadClients(tmp_path, running._clients, lambda *_: None, running)
    controls.register("a1", "app")
    assert controls.names_of_role("app") == ["a1"]
    assert controls.kill("a1").state is NodeState.DEAD
    assert controls.empty_stores("a1") == ["application/a1/state/0_1/data"]
    assert [path.name for path in folder.iterdir()] == ["settings"]
    with pytest.raises(LabFailure, match="p1 is not a process of an application"):
        controls.empty_stores("p1")


def test_leader_is_the_running_process_that_logged_its_election_last(
    open_app: Open, tmp_path: Path
) -> None:
    context = open_app("sleep 60").context
    for name, times in {"a1": ("10:00", "10:05"), "a2": ("10:03",), "a3": ()}.items():
        lines = [f"2026-01-01T{time} elected" for time in times]
        context.log(name).write_text("\n".join([*lines, "2026-01-01T11:00 other"]))
    leader = last_logged("elected")
    assert leader(context, ["a1", "a2", "a3"]) == "a1"
    assert leader(context, ["a2", "a3"]) == "a2"
    assert leader(context, ["a3"]) is None


def test_outputs_appear_only_if_all_of_them_can_be_read(open_app: Open, tmp_path: Path) -> None:
    def broken(_context: Context) -> Iterator[Output]:
        yield Output(sink="s", position=0)
        raise OSError("the database is gone")

    running = open_app("echo closing; sleep 60", outputs=broken)
    until(running.context.log("a1").read_text)
    assert running.save_outputs() == (
        "the outputs of application shell cannot be read: OSError: the database is gone; "
        "its log ends:\nclosing"
    )
    assert not (tmp_path / FILE).exists()


def test_finite_process_may_end_with_exit_code_0_only(open_app: Open) -> None:
    failures = []
    for code in (0, 3):
        running = open_app(f"exit {code}", is_finite=True)
        until(lambda running=running: not running._clients.running_clients(["a1"]))
        failures += running._clients.failures()
    assert failures == ["client a1 ended with exit code 3 (logs/client-a1.log)"]


def test_run_end_removes_processes_and_temporary_files(open_app: Open) -> None:
    running = open_app("mkdir -p $TMP; sleep 61 & echo $! >$TMP/x; mv $TMP/x $TMP/library; wait")
    context = running.context
    until((context.temporary("a1") / "library").exists)
    child = int((context.temporary("a1") / "library").read_text())
    assert psutil.pid_exists(child)
    running._clients.kill_all()
    running.close()
    until(lambda: not psutil.pid_exists(child))
    assert list(context.process_folder("a1").iterdir()) == []


def test_progress_counts_from_when_the_last_session_is_ready(open_app: Open) -> None:
    logs: list[str] = []

    def remaining(context: Context) -> None:
        logs.append(context.log("a1").read_text())

    running = open_app("sleep 1; echo up; sleep 60", missing=logged("up"), remaining=remaining)
    assert running.await_processed(5) == ""
    assert logs == ["up\n"]


def test_session_with_a_failure_is_restarted_while_records_remain(
    open_app: Open, tmp_path: Path
) -> None:
    def failure(_context: Context, name: str) -> str:
        return "task 0 has failed" if name == "a1" else ""

    def restart(name: str) -> None:
        running._clients.terminate([name], 5)
        running.start_process("a1.2")

    records = ["r/p1/1"]
    running = open_app(
        "echo up; sleep 60",
        missing=logged("up"),
        failure=failure,
        remaining=lambda context: records if not context.log("a1.2").exists() else [],
    )
    assert running.await_processed(20, restart) == ""
    log = tmp_path / "application" / "admin.log"
    assert log.read_text() == "restarted a1: task 0 has failed\n"


def test_session_with_a_failure_goes_on_if_nothing_remains(open_app: Open) -> None:
    restarted: list[str] = []
    running = open_app("sleep 60", failure=lambda _context, _name: "task 0 has failed")
    assert running.await_processed(5, restarted.append) == ""
    assert restarted == []


def test_wait_for_progress_returns_the_remaining_records(open_app: Open) -> None:
    remains: Sequence[dict[str, int] | set[str]] = ({"urteil-0": 3}, {"r/p1/4", "r/p1/7"})
    texts = [
        open_app("sleep 60", remaining=lambda _context, value=value: value).await_processed(0.1)
        for value in remains
    ]
    assert texts == ["{'urteil-0': 3}", "2 records"]
    assert open_app("sleep 60").await_processed(5) == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "application '' does not exist; known: .*pipeline"),
        ({"application": "stream-count"}, "did you mean streams-count?"),
        ({"application": "streams-count", "variant": "x"}, "no variant 'x'; known: forgets_store"),
    ],
)
def test_unknown_application_or_variant_is_rejected(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        application_of(WorkloadSpec(kind="application", options=options))


def test_declarations_are_complete() -> None:
    for name, application in applications().items():
        assert (application.name, bool(application.about)) == (name, True)
        assert {process.role for process in application.processes} <= {"app", "worker", "service"}
        prefixes = [process.prefix for process in application.processes]
        assert len(prefixes) == len(set(prefixes))
