"""The declaration of an application: a program of others, or of the user, between topics.

An application is one module in this package with one `APPLICATION`. The run starts its processes
before the load, waits until each is ready, and lets the nemesis kill, pause and restart them by
role. After the load it waits until the application has processed the input, ends the processes, and
reads what the application wrote outside of the run's topics. The guarantees then compare:

- copies, which carry the input's values through (topics with `copies`), by `unprocessed`,
  `processed_twice` and `reordered_copy`;
- results, which the application computed, by `wrong_result`: the rows of the evidence table
  `outputs` against the rows that `Application.expected` computes from the input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.promises import AT_LEAST_ONCE, Promise
from urteil.harness.clients.spec import base_name
from urteil.harness.dependencies.class_data_sharing import free_port
from urteil.harness.dependencies.java import QUICK_START, java
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import Scenario, TopicFact, TopicSpec, WorkloadSpec

READY_DEADLINE_S = 90.0
HOST = "127.0.0.1"
ADMIN_LOG = "admin.log"
"""In the application's folder: what the lab did as the application's operator after the faults."""
TEMPORARY = "tmp"
"""The folder of a process for temporary files, which is removed at the end of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One application in one run: what its commands and its steps depend on."""

    scenario: Scenario
    run: str
    run_dir: Path
    bootstrap: tuple[str, ...]
    topics: tuple[TopicFact, ...]
    second_bootstrap: tuple[str, ...]
    """The brokers of the second cluster (`west`), if the run has one."""
    wan_bootstrap: tuple[str, ...] = ()
    """The brokers of the first cluster for a process at the second, over the links `wan`."""
    journals: Callable[[str], list[Path]]
    """The journals of all clients of a kind, such as `producer`."""
    _ports: dict[str, int] = field(default_factory=dict)

    @property
    def load(self) -> WorkloadSpec:
        return self.scenario.workload

    @property
    def group(self) -> str:
        """The application's group or id. It is the run's own in a standing cluster, too."""
        return self.load.group

    @property
    def servers(self) -> str:
        """`bootstrap.servers`."""
        return ",".join(self.bootstrap)

    @property
    def inputs(self) -> list[str]:
        """The topics that the lab's producers write to."""
        return [topic.name for topic in self.topics if not topic.copies]

    @property
    def outputs(self) -> list[str]:
        """The topics that the application copies to."""
        return [topic.name for topic in self.topics if topic.copies]

    def topic(self, name: str) -> str:
        """The full name of a topic of the application's own (`Application.topics`)."""
        return own_topic(self.load, name)

    @property
    def folder(self) -> Path:
        """The application's folder in the run's folder."""
        return made_folder(self.run_dir / "application")

    def process_folder(self, process: str) -> Path:
        """The folder of one process. All its sessions share it."""
        return made_folder(self.folder / base_name(process))

    def temporary(self, process: str) -> Path:
        """The folder for temporary files of a process: a killed JVM leaves libraries there."""
        return made_folder(self.process_folder(process) / TEMPORARY)

    def jvm(self, process: str, heap: str) -> list[str]:
        """The beginning of the command of a JVM, with a heap such as `256m`."""
        temporary = f"-Djava.io.tmpdir={self.temporary(process)}"
        return [java(), f"-Xmx{heap}", *QUICK_START, "-XX:-UsePerfData", temporary]

    def log(self, process: str) -> Path:
        """The output of one session of a process."""
        return self.run_dir / "logs" / f"client-{process}.log"

    def port(self, name: str) -> int:
        """A port on loopback for a process or anything else with this name, the same each time."""
        return self._ports.setdefault(base_name(name), free_port())

    def address(self, name: str) -> str:
        """`127.0.0.1:port` with the port of that name."""
        return f"{HOST}:{self.port(name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppProcess:
    """The processes of one kind: `prefix` and a number from 1 name each of them."""

    prefix: str = "a"
    role: str = "app"
    """The role by which faults select them (`chaos/client_selectors.py`): `app`, `worker` or
    `service`."""
    count: Callable[[Scenario], int] = lambda _scenario: 1
    command: Callable[[Context, str], Sequence[str]]
    """The command that starts the process with this name, for each session anew."""
    missing: Callable[[Context, str], str] = lambda _context, _name: ""
    """What a started process still lacks to be ready; empty when it is ready."""
    ready_s: float = READY_DEADLINE_S
    failure: Callable[[Context, str], str] = lambda _context, _name: ""
    """What has failed in a session for good while its process runs on, such as a task; empty if
    nothing has. After the faults the lab restarts such a session, as its operator has to."""
    is_finite: bool = False
    """Whether it may end by itself, with exit code 0, when its work is done."""
    stores: tuple[str, ...] = ()
    """Folders of state, relative to the process's folder, that faults may empty while it is dead:
    the application can restore them."""

    def names(self, scenario: Scenario) -> list[str]:
        """The names of the processes that the scenario starts."""
        return [f"{self.prefix}{number}" for number in range(1, self.count(scenario) + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One application. All steps run in the lab's process; a step that fails raises."""

    name: str
    about: str
    processes: tuple[AppProcess, ...]
    """In the order of their start."""
    promise: Promise = AT_LEAST_ONCE
    """How often a record takes effect. The workload option `promise` overrides it."""
    is_ordered: bool = False
    """Whether it promises that copies of records with one key and partition keep their order."""
    topics: tuple[TopicSpec, ...] = ()
    """Topics of its own, which the run creates before it starts: `Context.topic` has their names.
    """
    options: tuple[type[WorkloadOptions], ...] = ()
    prepare: Callable[[Scenario], object] = lambda _scenario: None
    """Fetches and compiles its parts before the cluster starts, once a machine; MissingDependency
    names the part and the remedy."""
    surroundings: Callable[[Context], AbstractContextManager[object]] | None = None
    """What must stand from before its start until its outputs are read, such as a database."""
    submit: Callable[[Context], object] = lambda _context: None
    """A step after all processes are ready, such as the request that creates a connector."""
    remaining: Callable[[Context], object]
    """What it has not processed yet: false when it has processed the whole input. A value that does
    not change for `PATIENCE_S` ends the wait, and the guarantees judge what is missing."""
    finish: Callable[[Context], object] = lambda _context: None
    """A step after its processes have ended and before outputs are read."""
    outputs: Callable[[Context], Iterable[Output]] | None = None
    """What it wrote that the run's own readers do not read: result topics, files, tables."""
    expected: Callable[[Scenario], str] | None = None
    """SQL that computes its results from `inputs`: see `harness/verify/expected_outputs.py`."""
    leader: Callable[[Context, Sequence[str]], str | None] | None = None
    """The process, of the running ones, that leads the application's group; for `app_leader`."""
    acts: Mapping[str, Callable[[Context], str]] = field(default_factory=dict)
    """Acts of its operator, for the fault `operate_app`. Each returns what confirms it."""
    variants: tuple[str, ...] = ()
    """Seeded bugs that its processes have if the workload option `variant` names them."""
    bugs_show_in: tuple[str, ...] = ()
    """The scenarios that must find each seeded bug; empty for all that have the application."""

    def process(self, name: str) -> AppProcess:
        """The kind of the process with this name."""
        letters = re.sub(r"\d.*", "", base_name(name))
        return next(process for process in self.processes if process.prefix == letters)

    def names(self, scenario: Scenario) -> list[str]:
        """The names of all processes that the scenario starts."""
        return [name for process in self.processes for name in process.names(scenario)]


def own_topic(load: WorkloadSpec, name: str) -> str:
    """The full name of an application's own topic in a run with this workload."""
    return f"{load.group}-{name}"


def made_folder(folder: Path) -> Path:
    """The folder, made if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder
