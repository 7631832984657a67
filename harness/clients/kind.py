"""The declaration of a client kind.

Each kind is declared once, as `KIND` in the module of the client, beside the function that is its
work. `client_kinds` collects the declarations; the workload, the processes, the journal's first
entry, `urteil list clients` and the documents read them. A client process imports the module of its
own kind only, so the declaration is also what the process begins with (`client_main.run_client`).
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import msgspec

from urteil.chaos.capabilities import (
    CONSUMER_PROTOCOL,
    IDEMPOTENCE,
    TRANSACTIONS,
    Capability,
)
from urteil.harness.clients.applications import applications
from urteil.harness.clients.libraries import CONFLUENT, KAFKA_PYTHON
from urteil.harness.clients.options import WorkloadOptions, has_consumer_protocol
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import JournalWriter
from urteil.harness.scenario import Scenario, WorkloadSpec

Work = Callable[[ClientSpec, JournalWriter, Stop], None]
"""What a client process does from its start until the stop."""

PACKAGES = ("consumers", "offsets", "producers", "special", "transactions")
"""The packages of `harness.clients` that have clients of the lab."""


class Stage(enum.IntEnum):
    """The stage of a run with which clients end. They start in this order."""

    READS = 1
    """Readers and members of groups end when they have read the load."""
    COPIES = 2
    """Copiers end after the producers, before the last transactions are resolved."""
    APPLICATION = 3
    """The application ends when it has processed the load."""
    LOAD = 4
    """Producers and clients with requests of their own end first."""
    OBSERVATION = 5
    """Clients that observe brokers end together with the readers."""
    FINAL_READS = 6
    """Final readers end by themselves."""


class Writes(enum.Enum):
    """How a kind writes records, which decides acks, idempotence and isolation in the evidence."""

    NOTHING = enum.auto()
    PLAINLY = enum.auto()
    """With the workload's acks, never idempotent."""
    BY_WORKLOAD = enum.auto()
    """With the workload's acks and idempotence."""
    IDEMPOTENTLY = enum.auto()
    IN_TRANSACTIONS = enum.auto()


class Belongs(enum.Enum):
    """The clusters that the clients of a kind belong to, in a run with two."""

    TO_FIRST = enum.auto()
    TO_SECOND = enum.auto()
    IN_TURN = enum.auto()
    """Clients are dealt in turn to the clusters that have topics for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKind:
    """One kind of client."""

    name: str
    """The kind in the evidence (`clients.kind`)."""
    about: str
    stage: Stage
    prefix: str
    """A client's name is this and its number, or only this if the kind has a single client."""
    is_single: bool = False
    count: Callable[[Scenario], int]
    """The number of clients that a scenario starts."""
    names: Callable[[Scenario], list[str]] | None = None
    """The names of its clients, where they are not the prefix and a number."""
    work: Work | None = None
    """The work of a process of the lab; None for the processes of an application."""
    needs: Callable[[WorkloadSpec], Iterable[Capability]] = lambda _: ()
    """What brokers must be able to do in a workload; a cluster without it refuses the scenario."""
    judged_by: tuple[str, ...] = ()
    """Guarantees that would have less to judge without these clients."""
    options: tuple[type[WorkloadOptions], ...] = ()
    libraries: tuple[str, ...] = (KAFKA_PYTHON,)
    """Libraries that can play it. In a workload with another one the first of them plays it."""
    writes: Writes = Writes.NOTHING
    only_written_topics: bool = False
    """Whether a client's spec omits topics that the lab's producers do not write to."""
    group: Callable[[ClientSpec], str] | None = None
    instance: Callable[[ClientSpec], str | None] | None = None
    """The consumer group of a client, and its `group.instance.id` (KIP-345)."""
    is_member: bool = False
    """Whether clients join the workload's group, by its protocol (`MembershipOptions`)."""
    has_rate: bool = False
    """Whether clients share the workload's rate. The workload follows their progress."""
    may_be_old: bool = False
    """Whether every second client has the old protocol if the workload requests it."""
    belongs: Belongs = Belongs.TO_FIRST
    """The clusters of the run that its clients belong to."""
    handles_signals: bool = False
    """Whether the lab controls clients by SIGUSR1 and SIGUSR2."""

    @property
    def module(self) -> str:
        """The module that a process of this kind runs."""
        assert self.work is not None, f"{self.name} is not a client of the lab"
        return self.work.__module__

    @property
    def is_transactional(self) -> bool:
        return self.writes is Writes.IN_TRANSACTIONS

    @property
    def is_producer(self) -> bool:
        """Whether its clients write outside of transactions, and read nothing."""
        return self.writes not in (Writes.NOTHING, Writes.IN_TRANSACTIONS)

    def required_capabilities(self, load: WorkloadSpec) -> list[Capability]:
        """Its needs, and those of the way it writes and of its group's protocol."""
        by_writes = {Writes.IN_TRANSACTIONS: [TRANSACTIONS], Writes.IDEMPOTENTLY: [IDEMPOTENCE]}
        of_group = [CONSUMER_PROTOCOL] if self._has_consumer_protocol(load) else []
        return [*self.needs(load), *by_writes.get(self.writes, []), *of_group]

    def client_names(self, scenario: Scenario) -> list[str]:
        """The names of the clients that the scenario starts."""
        if self.names is not None:
            return self.names(scenario)
        count = self.count(scenario)
        if self.is_single:
            return [self.prefix] if count else []
        return [f"{self.prefix}{number}" for number in range(1, count + 1)]

    def library(self, load: WorkloadSpec) -> str:
        """The library of its clients in a workload. Only confluent-kafka has members of the
        protocol `consumer`."""
        if self._has_consumer_protocol(load):
            return CONFLUENT
        return load.client if load.client in self.libraries else self.libraries[0]

    def _has_consumer_protocol(self, load: WorkloadSpec) -> bool:
        return self.is_member and has_consumer_protocol(load)

    def complete(self, spec: ClientSpec) -> ClientSpec:
        """The spec with the facts that follow from the kind. As in the Java client, idempotence by
        workload requires acks=all."""
        load = spec.workload
        is_old = self.may_be_old and spec.is_old_by_turn
        by_workload = load.idempotent and load.acks == -1 and not is_old
        always = self.writes in (Writes.IDEMPOTENTLY, Writes.IN_TRANSACTIONS)
        return msgspec.structs.replace(
            spec,
            kind=self.name,
            is_old=is_old,
            idempotent=always or (self.writes is Writes.BY_WORKLOAD and by_workload),
            group=self.group(spec) if self.group else None,
            instance=self.instance(spec) if self.instance else None,
        )


@cache
def client_kinds() -> Mapping[str, ClientKind]:
    """All declared kinds by name, in the order in which clients start."""
    kinds = sorted(_find_declarations(), key=lambda kind: (kind.stage, kind.name))
    return {kind.name: kind for kind in kinds}


def declared_options() -> list[type[WorkloadOptions]]:
    """The structs of options of all kinds and applications, each once."""
    of_kinds = [option for kind in client_kinds().values() for option in kind.options]
    of_applications = [option for app in applications().values() for option in app.options]
    return list(dict.fromkeys(of_kinds + of_applications))


def _find_declarations() -> Iterator[ClientKind]:
    root = __name__.rpartition(".")[0]
    modules = [f"{root}.applications.client_kind"]
    for name in PACKAGES:
        package = importlib.import_module(f"{root}.{name}")
        modules += [
            f"{root}.{name}.{module.name}" for module in pkgutil.iter_modules(package.__path__)
        ]
    for module in modules:
        kind = getattr(importlib.import_module(module), "KIND", None)
        if isinstance(kind, ClientKind):
            yield kind


def libraries_of(scenario: Scenario) -> list[str]:
    """The libraries that clients of the scenario can use, the usual one first."""
    kinds = [kind for kind in client_kinds().values() if kind.client_names(scenario)]
    return list(dict.fromkeys(library for kind in kinds for library in kind.libraries))
