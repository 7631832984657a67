"""Starts of whole brokers on a real ZooKeeper, put to Apache Kafka 3.9.1 and to ours: the ids they
take, what they write to `meta.properties`, and the starts that both refuse."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer
from tests.conformance.probes import probe
from tests.ports import free_port
from tests.waiting import until

UP = re.compile(r"broker (\d+) is up, epoch")
REFUSED = re.compile(r"CRITICAL main (.*)")


class Starts(Protocol):
    """One side's way to start and stop a broker."""

    def start(self, file: Path) -> str:
        """`ok ID`, or why the start was refused."""

    def stop(self, file: Path) -> None:
        """A clean stop."""


class Theirs:
    """All brokers in one JVM."""

    def __init__(self, folder: Path) -> None:
        with (folder / "kafka.log").open("wb") as output:
            self.process = subprocess.Popen(
                probe("StartProbe"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )

    def start(self, file: Path) -> str:
        return self._answer(f"start {file}")

    def stop(self, file: Path) -> None:
        assert self._answer(f"stop {file}") == "ok"

    def _answer(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


class Ours:
    """A process a broker."""

    def __init__(self) -> None:
        self.processes: dict[Path, subprocess.Popen[bytes]] = {}

    def start(self, file: Path) -> str:
        log = file.with_suffix(f".{len(self.processes)}.log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-u", "-m", "urteil.broker", str(file)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.processes[file] = process
        until(lambda: UP.search(log.read_text()) or process.poll() is not None, f"{file} starts")
        if (up := UP.search(log.read_text())) is not None:
            return f"ok {up[1]}"
        assert process.returncode == 1
        refused = REFUSED.search(log.read_text())
        assert refused is not None, log.read_text()
        return refused[1]

    def stop(self, file: Path) -> None:
        self.processes[file].terminate()
        assert self.processes[file].wait(60) == 0

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


class Place:
    """A ZooKeeper path and folders of one scenario on one side."""

    def __init__(self, starts: Starts, connect: str, folder: Path) -> None:
        self.starts, self._connect, self._folder = starts, connect, folder
        self.ports: dict[str, int] = {}
        folder.mkdir(parents=True)

    def data(self, name: str, meta: str | None = None) -> Path:
        """A log directory, with this `meta.properties`."""
        path = self._folder / name
        path.mkdir(exist_ok=True)
        if meta is not None:
            (path / "meta.properties").write_text(meta)
        return path

    def meta(self, name: str) -> dict[str, str]:
        lines = (self._folder / name / "meta.properties").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if not line.startswith("#"))

    def address(self, name: str) -> str:
        return f"127.0.0.1:{self.ports.setdefault(name, free_port())}"

    def file(self, name: str, **properties: str) -> Path:
        """`a__b` is the property `a.b`; listeners and one log directory by default."""
        chosen = {
            "listeners": f"PLAINTEXT://{self.address(name)}",
            "log.dirs": str(self._folder / name),
            "zookeeper.connect": self._connect,
            "zookeeper.session.timeout.ms": "18000",
            "offsets.topic.replication.factor": "1",
            **{key.replace("__", "."): value for key, value in properties.items()},
        }
        path = self._folder / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in chosen.items()))
        return path

    def start(self, name: str, **properties: str) -> str:
        return self.starts.start(self.file(name, **properties))

    def stop(self, name: str) -> None:
        self.starts.stop(self._folder / f"{name}.properties")


def no_id(place: Place) -> list[str]:
    answers = [place.start("a"), place.start("b")]
    answers.append(str([place.meta(name)["broker.id"] for name in "ab"]))
    for name in "ab":
        place.stop(name)
    answers.append(place.start("b"))
    answers.append(place.start("c", broker__id__generation__enable="false"))
    return answers


def node_id_alone(place: Place) -> list[str]:
    return [place.start("a", node__id="5"), str(sorted(place.meta("a").items())[:1])]


def ids_in_folders(place: Place) -> list[str]:
    kept = "version=0\nbroker.id=1001\n"
    for name, meta in (("a", kept), ("b", kept), ("c", kept), ("d", "version=0\nbroker.id=3\n")):
        place.data(name, meta)
    both = ",".join(str(place.data(name)) for name in "cd")
    one_empty = ",".join(str(place.data(name)) for name in "ax")
    answers = [
        place.start("b", broker__id="3"),
        place.start("b", broker__id="1001"),
        place.start("cd", log__dirs=both),
        place.start("cd", broker__id="3", log__dirs=both),
        place.start("a", log__dirs=one_empty),
        str([place.meta(name)["broker.id"] for name in "ax"]),
    ]
    place.stop("a")
    generation = {"broker__id__generation__enable": "false"}
    return [*answers, place.start("b", broker__id="1001", **generation)]


def folder_of_another_cluster(place: Place) -> list[str]:
    place.data("a", "version=0\nbroker.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    return [place.start("a", broker__id="1")]


METAS = (
    "version=1\nnode.id=1\n",
    "version=1\nnode.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n",
    "version=2\nbroker.id=1\n",
    "broker.id=1\n",
    "version=0\nnode.id=1\n",
    "version=0\nbroker.id=x\n",
    "version=0\nbroker.id=-1\n",
    "version=x\nbroker.id=1\n",
    "version=0\n",
    "",
    "version=0\nbroker.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
    "version=0\nbroker.id=1\ndirectory.id=eW91LWFyZS1hLWRpci4\n",
    "version=0\nbroker.id=1\ndirectory.id=eW91LWFyZS1hLWRpci4aaa\n",
    "version=0\nbroker.id=1\nother=x\n",
)


def folders_of_other_versions(place: Place) -> list[str]:
    answers = []
    for number, meta in enumerate(METAS):
        name = f"m{number}"
        place.data(name, meta)
        answers.append(place.start(name, broker__id="1"))
        if answers[-1].startswith("ok"):
            kept = place.meta(name)
            kept.pop("cluster.id")
            answers.append(str(sorted(kept.items())))
            place.stop(name)
    return answers


def addresses_of_another(place: Place) -> list[str]:
    first = place.start("a", broker__id="1")
    shared, own, third = (place.address(name) for name in "abc")
    port = shared.split(":")[1]
    answers = [
        first,
        _second(place, f"PLAINTEXT://{own}", f"PLAINTEXT://{shared}"),
        _second(place, f"X://{own},Y://{third}", f"X://{own},Y://{shared}"),
        _second(place, f"PLAINTEXT://{own}", f"PLAINTEXT://localhost:{port}"),
    ]
    place.stop("b")
    place.stop("a")
    return [*answers, _second(place, f"PLAINTEXT://{own}", f"PLAINTEXT://{shared}")]


def _second(place: Place, listeners: str, advertised: str) -> str:
    return place.start(
        "b",
        broker__id="2",
        listeners=listeners,
        advertised__listeners=advertised,
        inter__broker__listener__name=listeners.split(":")[0],
        listener__security__protocol__map="X:PLAINTEXT,Y:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    )


def id_of_another(place: Place) -> list[str]:
    first = place.start("a", broker__id="1")
    return [first, place.start("b", broker__id="1", zookeeper__session__timeout__ms="2000")]


def listener_that_another_has_not(place: Place) -> list[str]:
    def listener_file(name: str) -> str:
        return place.start(
            name,
            broker__id=str("ab".index(name)),
            listeners=f"{name.upper()}://{place.address(name)}",
            listener__security__protocol__map=f"{name.upper()}:PLAINTEXT",
            inter__broker__listener__name=name.upper(),
        )

    return [listener_file("a"), listener_file("b")]


SCENARIOS: tuple[Callable[[Place], list[str]], ...] = (
    no_id,
    node_id_alone,
    ids_in_folders,
    folder_of_another_cluster,
    folders_of_other_versions,
    addresses_of_another,
    id_of_another,
    listener_that_another_has_not,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(tmp_path_factory.mktemp("zk"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    with ExitStack() as stack:
        side = Theirs(tmp_path_factory.mktemp("kafka"))
        stack.callback(side.close)
        yield side


@pytest.fixture
def ours() -> Iterator[Ours]:
    side = Ours()
    yield side
    side.close()


@pytest.mark.thorough
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_starts_choose_ids_and_fail_alike(
    scenario: Callable[[Place], list[str]],
    server: ZooKeeperServer,
    theirs: Theirs,
    ours: Ours,
    tmp_path: Path,
) -> None:
    answers = {}
    for name, side in (("theirs", theirs), ("ours", ours)):
        connect = f"{server.connect}/{name}-{scenario.__name__}-{os.getpid()}"
        answers[name] = scenario(Place(side, connect, tmp_path / name))
    assert _outcomes(answers["ours"]) == _outcomes(answers["theirs"]), answers


def _outcomes(answers: Sequence[str]) -> list[str]:
    """Sentences are not compared."""
    return [outcome if outcome.startswith(("ok", "[")) else "refused" for outcome in answers]
