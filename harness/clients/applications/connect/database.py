"""A PostgreSQL server of a run: its files are in the run's folder, it listens on loopback alone.

The server is a process of the application with the role `service`, so that faults may kill it.
PostgreSQL refuses to run as root: root starts it as `nobody`, to whom the folder belongs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until
from urteil.harness.child_process import await_exit
from urteil.harness.clients.applications.declaration import HOST, AppProcess, Context, made_folder
from urteil.harness.dependencies.java import utf8_locale
from urteil.harness.dependencies.postgresql import USER, as_server_user, postgresql

PREFIX = "d"
NAME = f"{PREFIX}1"
ROLE, DATABASE = "urteil", "postgres"
TIMEOUT_S = 60.0
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "40",
}
"""Without fsync: faults kill the server and never the machine."""


def server() -> AppProcess:
    """The server as a process of an application."""
    return AppProcess(
        prefix=PREFIX,
        role="service",
        command=lambda context, _name: _command(context),
        missing=lambda context, _name: describe_missing(context),
    )


def _command(context: Context) -> list[str]:
    """The server's command. Creates its files before its first start."""
    data = _data(context)
    if not (data / "PG_VERSION").exists():
        _create(data)
    settings = {**SETTINGS, "port": context.port(NAME)}
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    return [*as_server_user(), postgresql("postgres"), "-D", str(data), *options]


def _data(context: Context) -> Path:
    return made_folder(context.folder / "database")


def _create(data: Path) -> None:
    """`initdb`, as the server's user. LabFailure has its error."""
    user = as_server_user()
    if user:
        shutil.chown(data, USER)
    argv = [*user, postgresql("initdb"), "-D", str(data), "-U", ROLE]
    argv += ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
    process = subprocess.run(
        argv, capture_output=True, text=True, timeout=TIMEOUT_S, cwd="/", check=False
    )
    if process.returncode:
        raise LabFailure(f"initdb failed for {data}:\n{process.stderr[-1000:]}")


def url(context: Context) -> str:
    """The JDBC address of the database."""
    return f"jdbc:postgresql://{context.address(NAME)}/{DATABASE}"


def query(context: Context, sql: str) -> list[str]:
    """The rows of a query, columns separated by tabs. LabFailure if the server refuses it."""
    argv = [postgresql("psql"), "-h", HOST, "-p", str(context.port(NAME)), "-U", ROLE]
    argv += ["-d", DATABASE, "-X", "-q", "-A", "-t", "-F", "\t", "-c", sql]
    try:
        process = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd="/"
        )
    except subprocess.TimeoutExpired as error:
        raise LabFailure(f"the database did not answer in {TIMEOUT_S:g} s") from error
    if process.returncode:
        raise LabFailure(f"the database refused a query: {process.stderr.strip()[-500:]}")
    return process.stdout.splitlines()


def describe_missing(context: Context) -> str:
    try:
        query(context, "SELECT 1")
    except LabFailure as failure:
        return str(failure)
    return ""


@contextlib.contextmanager
def reopen(context: Context) -> Iterator[None]:
    """The server once more after the run's processes have ended, until the block ends."""
    with (context.run_dir / "logs" / f"client-{NAME}.log").open("ab") as log:
        process = subprocess.Popen(
            _command(context),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **utf8_locale()},
            start_new_session=True,
        )
    try:
        lacking = until(
            lambda: describe_missing(context),
            lambda text: not text or process.poll() is not None,
            deadline_s=TIMEOUT_S,
            poll_s=0.2,
        )
        if process.poll() is not None:
            lacking = "it ended by itself"
        if lacking:
            raise LabFailure(f"the database cannot be read: {lacking}")
        yield
    finally:
        _end(process)


def remove(context: Context) -> None:
    """Remove the files of a database that has ended."""
    shutil.rmtree(_data(context))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server at once but cleanly (SIGINT), by force after the deadline."""
    process.send_signal(signal.SIGINT)
    await_exit(process, deadline_s=TIMEOUT_S)


def programs() -> Sequence[str]:
    """The programs that a run needs, installed on first use."""
    return [*as_server_user(), *(postgresql(name) for name in ("postgres", "initdb", "psql"))]
