"""The database of a run: a real PostgreSQL server in the run's folder."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until
from urteil.harness.clients.applications.connect import database
from urteil.harness.clients.applications.declaration import Context
from urteil.harness.dependencies.postgresql import describe_postgresql
from urteil.harness.scenarios import SCENARIOS


def context(tmp_path: Path) -> Context:
    (tmp_path / "logs").mkdir()
    return Context(
        scenario=SCENARIOS["connect-database"],
        run="r",
        run_dir=tmp_path,
        bootstrap=(),
        topics=(),
        second_bootstrap=(),
        journals=lambda _kind: [],
    )


def test_rows_survive_the_kill_of_the_server(tmp_path: Path) -> None:
    run = context(tmp_path)
    with (tmp_path / "logs" / "server.log").open("wb") as log:
        server = subprocess.Popen(
            database.server().command(run, "d1"), stdout=log, stderr=log, start_new_session=True
        )
    missing = until(
        lambda: database.describe_missing(run), lambda text: not text, deadline_s=60, poll_s=0.1
    )
    assert not missing, (tmp_path / "logs" / "server.log").read_text()
    assert psutil.Process(server.pid).uids().effective != 0
    database.query(run, "CREATE TABLE records (line text); INSERT INTO records VALUES ('a b')")
    os.killpg(server.pid, signal.SIGKILL)
    server.wait(30)
    with database.reopen(run):
        assert database.query(run, "SELECT line, 1 FROM records") == ["a b\t1"]
        with pytest.raises(LabFailure, match='relation "other" does not exist'):
            database.query(run, "SELECT * FROM other")
    with pytest.raises(LabFailure, match="refused a query"):
        database.query(run, "SELECT 1")


def test_server_that_cannot_start_is_a_failure_of_the_lab(tmp_path: Path) -> None:
    run = context(tmp_path)
    with database.reopen(run):
        pass
    (run.folder / "database" / "postgresql.conf").write_text("no setting\n")
    with (
        pytest.raises(LabFailure, match="cannot be read: it ended by itself"),
        database.reopen(run),
    ):
        pass


def test_doctor_shows_the_server() -> None:
    shown = describe_postgresql()
    assert shown.found
    assert int(shown.version.split(".")[0]) >= 9
