"""A real ZooKeeper for tests: starts in about a second; may be paused and killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

from tests.ports import free_port
from tests.waiting import LONG_S, until
from urteil.broker.zookeeper.session import Session
from urteil.harness.cluster.session_expiry import SessionGone, end_session
from urteil.harness.dependencies.java import QUICK_START, java
from urteil.harness.dependencies.zookeeper import zookeeper_classes, zookeeper_classpath

TICK_MS = 100  # sessions of 200 to 20,000 ms


class ZooKeeperServer:
    """One server with an empty data folder."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._config = folder / "zoo.cfg"
        self._config.write_text(
            f"tickTime={TICK_MS}\ndataDir={folder / 'data'}\nclientPortAddress=127.0.0.1\n"
            f"clientPort={self.port}\nadmin.enableServer=false\nmaxSessionTimeout=20000\n"
            "4lw.commands.whitelist=*\nmaxClientCnxns=0\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self._folder / "zk.log").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(java()),
                    "-Xmx128m",
                    *QUICK_START,
                    *zookeeper_classes(),
                    "-cp",
                    zookeeper_classpath(),
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    str(self._config),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        until(self._serves, "ZooKeeper starts")

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "zk.log").read_text()[-2000:]
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as asked:
                asked.sendall(b"ruok")
                return asked.recv(16) == b"imok"
        except OSError:
            return False

    def pause(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)  # all its threads stand

    def resume(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def expire(address: str, opened: Session) -> None:
    """Expire the session from another connection, as ZooKeeper does after a timeout. Its owner
    reconnects at once, so repeat until the session is gone."""
    host, _, port = address.rpartition(":")
    session, _ = opened._client.client_id
    while True:
        try:
            end_session((host, int(port)), session, timeout_s=LONG_S)
        except SessionGone:
            return
        except ConnectionResetError:
            continue
