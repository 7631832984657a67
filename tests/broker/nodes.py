"""Brokers as processes on a real ZooKeeper."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
from kazoo.client import KazooClient

from tests.broker.zookeeper.server import ZooKeeperServer
from tests.ports import free_port
from tests.waiting import LONG_S, until

STEADY = {"zookeeper_session_timeout_ms": "15000", "replica_lag_time_max_ms": "15000"}
"""For brokers of which none is to die: a machine that stalls makes none seem dead."""


class Nodes:
    """`count` brokers in `folder`, with ids from 1 and `dirs` log directories each. Stops them on
    exit."""

    def __init__(
        self,
        folder: Path,
        zookeeper: ZooKeeperServer,
        chroot: str,
        count: int,
        dirs: int = 1,
        **config: str,
    ) -> None:
        self._folder = folder
        self._dirs = dirs
        self._connect = zookeeper.connect + chroot
        self._config = {name.replace("_", "."): value for name, value in config.items()}
        self.ports = {broker: free_port() for broker in range(1, count + 1)}
        self.racks: dict[int, str] = {}  # of brokers that are to have one when they start
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.zk = KazooClient(self._connect)

    def __enter__(self) -> Nodes:
        for broker in self.ports:
            self.start(broker)
        self.zk.start(timeout=LONG_S)
        until(self._all_registered, "all brokers registered")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.zk.stop()
        self.zk.close()

    @property
    def bootstrap(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports.values()]

    def properties(self, broker: int) -> dict[str, str]:
        """The properties of its file."""
        properties = {
            "broker.id": str(broker),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker]}",
            "zookeeper.connect": self._connect,
            "zookeeper.session.timeout.ms": "2000",
            "log.dirs": ",".join(str(path) for path in self.dirs(broker)),
            "replica.lag.time.max.ms": "2000",
            "offsets.topic.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "0",
            "controlled.shutdown.retry.backoff.ms": "200",
            **self._config,
        }
        if broker in self.racks:
            properties["broker.rack"] = self.racks[broker]
        return properties

    def start(self, broker: int) -> None:
        file = self._folder / f"{broker}.properties"
        properties = self.properties(broker)
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        with self.log(broker).open("ab") as output:
            self.processes[broker] = subprocess.Popen(
                [sys.executable, "-P", "-u", "-m", "urteil.broker", str(file)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def dirs(self, broker: int) -> list[Path]:
        """Its log directories: `data1`, `data1b`."""
        return [self._folder / f"data{broker}{'bcd'[:number]}" for number in range(self._dirs)]

    def log(self, broker: int) -> Path:
        return self._folder / f"{broker}.log"

    def kill(self, broker: int) -> None:
        self.processes[broker].kill()
        self.processes[broker].wait()

    def stop(self, broker: int) -> int:
        """Stop by SIGTERM; return the exit code."""
        self.processes[broker].send_signal(signal.SIGTERM)
        return self.processes[broker].wait(LONG_S)

    def resident_bytes(self, broker: int) -> int:
        return int(psutil.Process(self.processes[broker].pid).memory_info().rss)

    def registration(self, broker: int) -> int | None:
        """The czxid of the broker's node; None without a node."""
        stat = self.zk.exists(f"/brokers/ids/{broker}")
        return None if stat is None else int(stat.czxid)

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        data, _ = self.zk.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
        content: dict[str, Any] = json.loads(data)
        return content

    def isr_size(self, topic: str, partition: int) -> int:
        return len(self.state(topic, partition)["isr"])

    def _all_registered(self) -> bool:
        for broker, process in self.processes.items():
            assert process.poll() is None, self.log(broker).read_text()[-3000:]
        if not self.zk.exists("/controller"):
            return False
        return len(self.zk.get_children("/brokers/ids")) == len(self.ports)
