"""The workload of a run: starts the clients, reports their progress, and ends them.

The client kinds declare which clients a scenario starts (`ClientKind.count`) and with which stage
of the run they end (`ClientKind.stage`). After the load the stages end in this order: producers,
application and transactions, readers and observers. Then the final reads follow. A client that does
not end within its deadline is killed and is a problem of the run.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from urteil.chaos.topology import EAST, WEST
from urteil.chaos.waiting import until
from urteil.harness.clients.applications import PIPELINE, application_of
from urteil.harness.clients.applications.declaration import Context, own_topic
from urteil.harness.clients.applications.pipeline import check_topics
from urteil.harness.clients.applications.running import RunningApplication, log_tail
from urteil.harness.clients.client_controls import WorkloadClients
from urteil.harness.clients.consumers.read_progress import ReadProgress, await_read
from urteil.harness.clients.consumers.share_progress import await_drained
from urteil.harness.clients.final_reads import FinalReads, FinalRounds, Leaders
from urteil.harness.clients.journal_tail import Progress, Tails
from urteil.harness.clients.kind import Stage, client_kinds, declared_options
from urteil.harness.clients.libraries import JAVA, VERIFIABLE
from urteil.harness.clients.options import ShareOptions, check_options, check_protocol
from urteil.harness.clients.processes import ClientPlace, Clients, Spawn, spawn_process
from urteil.harness.clients.run_specs import FLUSH_DEADLINE_S, RunSpecs
from urteil.harness.clients.spec import own_id, transaction_timeout_ms
from urteil.harness.clients.transactions.delayed_requests import check_partitions
from urteil.harness.clients.transactions.open_transactions import await_no_open_transactions
from urteil.harness.clients.transactions.transactional_id_probe import initialise_ids
from urteil.harness.clients.workload_kinds import check_workload_kind, is_transactional
from urteil.harness.dependencies.java_client import java_classes
from urteil.harness.dependencies.kafka import kafka_classpath
from urteil.harness.evidence.journal import JournalReader, Right
from urteil.harness.scenario import Scenario, TopicFact, TopicSpec, WorkloadSpec
from urteil.harness.stack_dumps import DumpSource

STOP_DEADLINE_S = 5.0
BULK_DEADLINE_S = 60.0
BULK_LEAST_PER_S = 1_000
APP_DEADLINE_S = 120.0
APP_END_S = 15.0
ACCESS_S = 8.0
"""Three seconds of attempts after the five that `unauthorised` allows a broker."""
ACCESS_DEADLINE_S = 40.0
ACCESS_POLL_S = 0.5
READ_DEADLINE_S = 120.0
DRAIN_QUIET_S = 10.0
"""More than `unsettled_record` allows a group beyond the duration of a lock."""
DRAIN_DEADLINE_S = 120.0
TXN_END_S = 30.0
TXN_SETTLE_S = 30.0
POLL_S = 0.05


def check_workload(load: WorkloadSpec) -> None:
    """ValueError for a kind or an option that does not exist, for an impossible value, and for an
    option that the topics do not allow."""
    check_workload_kind(load.kind)
    check_options(load, declared_options())
    check_protocol(load)
    check_partitions(load)
    application_of(load)


def why_beside_lab(scenario: str, load: WorkloadSpec) -> str:
    """Why the clients of a workload cannot run on other hosts; empty if they can."""
    if load.client in (JAVA, VERIFIABLE):
        return f"clients of --client {load.client} need Java and jars, which hosts do not get"
    if application_of(load) is not None:
        return f"the application of {scenario} runs beside the lab"
    return ""


def prepare_workload(scenario: Scenario) -> None:
    """Fetch and compile what the clients need, once a machine. MissingDependency names what cannot
    be installed; ValueError is that of `check_workload`."""
    check_workload(scenario.workload)
    if scenario.workload.client == VERIFIABLE:
        kafka_classpath()
    if scenario.workload.client == JAVA:
        java_classes()
    if application := application_of(scenario.workload):
        application.prepare(scenario)


def application_topics(load: WorkloadSpec) -> list[TopicSpec]:
    """The topics of the application's own, which the run creates beside the workload's."""
    application = application_of(load)
    return [
        msgspec.structs.replace(topic, name=own_topic(load, topic.name))
        for topic in (application.topics if application else ())
    ]


class Workload:
    """The clients of one run. One thread starts and ends them; counters are thread-safe."""

    def __init__(
        self,
        scenario: Scenario,
        run_dir: Path,
        bootstrap: Sequence[str],
        topics: Sequence[TopicFact],
        run_id: str,
        *,
        second_bootstrap: Sequence[str] = (),
        wan_bootstrap: Sequence[str] = (),
        user_listeners: Sequence[str] = (),
        spawn: Spawn = spawn_process,
        elsewhere: ClientPlace | None = None,
    ) -> None:
        """ValueError if the scenario's workload is invalid."""
        prepare_workload(scenario)
        if scenario.workload.kind == PIPELINE:
            check_topics(topics)
        self._scenario = scenario
        self._specs = RunSpecs(
            scenario=scenario,
            run_dir=run_dir,
            run_id=run_id,
            bootstrap=tuple(bootstrap),
            second_bootstrap=tuple(second_bootstrap),
            wan_bootstrap=tuple(wan_bootstrap),
            user_listeners=tuple(user_listeners),
            topics=tuple(topics),
        )
        self._kinds = client_kinds()
        self._clients = Clients(run_dir, spawn, elsewhere)
        self._application = self._open_application(run_dir)
        self._client_controls = WorkloadClients(
            run_dir, self._clients, self._start_one, self._application
        )
        self._producers = [
            name
            for kind in self._kinds.values()
            if kind.has_rate
            for name in kind.client_names(scenario)
        ]
        self._tails = Tails([self._specs.journal(name) for name in self._producers])
        self._problems: list[str] = []

    def _open_application(self, run_dir: Path) -> RunningApplication | None:
        application = application_of(self._scenario.workload)
        if application is None:
            return None
        context = Context(
            scenario=self._scenario,
            run=self._specs.run_id,
            run_dir=run_dir,
            bootstrap=self._specs.bootstrap,
            second_bootstrap=self._specs.second_bootstrap,
            wan_bootstrap=self._specs.wan_bootstrap,
            topics=self._specs.topics,
            journals=lambda kind: [
                self._specs.journal(name) for name in self._client_controls.names_of_kind(kind)
            ],
        )
        return RunningApplication(application, context, self._clients)

    def start(self) -> None:
        """Start all clients, stage by stage. Returns at once, unless an application must become
        ready: LabFailure if it does not."""
        if self._application:
            self._application.enter_surroundings()
        for kind in self._kinds.values():
            for name in kind.client_names(self._scenario):
                self._start_one(kind.name, name, 1)
            if self._application and kind.stage is Stage.APPLICATION:
                self._application.await_ready()

    def controls(self) -> WorkloadClients:
        """The operations of chaos on these clients."""
        return self._client_controls

    def _start_one(self, kind_name: str, name: str, session: int) -> None:
        """Start a client, or the next session of one."""
        kind = self._kinds[kind_name]
        if kind.stage is Stage.APPLICATION:
            assert self._application is not None
            self._application.start_process(name)
        else:
            if kind.has_rate and session > 1:
                self._tails.add(self._specs.journal(name))
            self._clients.start(self._specs.spec(name, kind, session=session), kind)
        self._client_controls.register(name, kind_name)

    def _names(self, *stages: Stage) -> list[str]:
        """The names of all clients of these stages that were ever started."""
        return [
            name
            for kind in self._kinds.values()
            if kind.stage in stages
            for name in self._client_controls.names_of_kind(kind.name)
        ]

    def _terminate(self, names: Sequence[str], noun: str, deadline_s: float) -> None:
        """End clients. A client past the deadline is killed, which is a problem of the run."""
        for name in self._clients.terminate(names, deadline_s):
            self._problems.append(f"{noun} {name} did not end in {deadline_s:g} s and was killed")

    def progress(self) -> Progress:
        """Counts over all producers so far."""
        return self._tails.progress()

    def acknowledged_count(self) -> int:
        """The number of records acknowledged so far."""
        return self.progress().acked

    def await_acked(self, records: int, *, since_ns: int = 0, deadline_s: float) -> bool:
        """Wait until `records` were acknowledged since `since_ns`. False if the deadline passes
        first."""
        return until(
            lambda: self.acknowledged_since(since_ns) >= records,
            deadline_s=deadline_s,
            poll_s=POLL_S,
        )

    def acknowledged_since(self, since_ns: int) -> int:
        """The number of records acknowledged at `since_ns` (CLOCK_MONOTONIC) or later."""
        return self._tails.acknowledged_since(since_ns)

    def stop_producers(self, deadline_s: float = 2 * FLUSH_DEADLINE_S) -> None:
        """Let producers flush and end. A producer past the deadline is killed; the outcome of its
        open sends is unknown. Permissions change for the last time: see `finish_access_attempts`.
        """
        for name in self._client_controls.names_of_kind("visitor"):
            self._clients.send_signal(name, signal.SIGUSR1)
        self._terminate(self._names(Stage.LOAD), "producer", deadline_s)

    def finish_transactions(self, *, is_healthy: bool = True) -> None:
        """End copiers, then wait until no transaction is open; transactions of dead clients last
        until their timeout. If none is open and the cluster is healthy, initialise each
        transactional id once more, which would end an open transaction. `hanging_txn` judges
        transactions that remain open."""
        load = self._scenario.workload
        if not is_transactional(load.kind):
            return
        self._terminate(self._names(Stage.COPIES), "copier", TXN_END_S)
        timeout_ms = transaction_timeout_ms(load)
        deadline_s = timeout_ms / 1000 + TXN_SETTLE_S
        open_partitions = await_no_open_transactions(
            self._specs.bootstrap, self._specs.partitions(), deadline_s=deadline_s
        )
        if is_healthy and not open_partitions:
            names = self._names(Stage.LOAD, Stage.COPIES)
            ids = {own_id(load, name) for name in names}
            acts = initialise_ids(self._specs.bootstrap, ids, timeout_ms, deadline_s=deadline_s)
            self._client_controls.record_acts(acts)

    def finish_bulk(self) -> None:
        """Wait until all records of a bulk load are completed."""
        records = (self._specs.records() or 0) * len(self._producers)

        def is_completed() -> bool:
            progress = self.progress()
            return progress.invoked >= records and not progress.pending_sends

        deadline_s = BULK_DEADLINE_S + records / BULK_LEAST_PER_S
        if records and not until(is_completed, deadline_s=deadline_s, poll_s=POLL_S):
            self._problems.append(f"not all of {records} records were sent in time")

    def finish_reading(self, deadline_s: float = READ_DEADLINE_S) -> None:
        """Let live readers and the group read to the end, unless they get nothing more, which
        `no_delivery` judges. Bulk loads and transactions have ends of their own."""
        running = self._client_controls.names("consumer"), self._client_controls.names("group")
        kind = self._scenario.workload.kind
        if kind == "bulk" or is_transactional(kind) or not any(running):
            return
        for cluster in (EAST, WEST):
            consumer = self._kinds["consumer"]
            own = [n for n in running[0] if self._specs.cluster_of(n, consumer) == cluster]
            readers = [ReadProgress([self._specs.journal(name)]) for name in own]
            if running[1] and cluster == EAST:
                names = self._client_controls.names_of_kind("group")
                readers.append(ReadProgress([self._specs.journal(name) for name in names]))
            if readers:
                brokers = self._specs.addresses(cluster)
                partitions = self._specs.partitions(cluster)
                isolation = self._scenario.workload.isolation
                await_read(brokers, partitions, readers, deadline_s=deadline_s, isolation=isolation)

    def finish_sharing(self, deadline_s: float = DRAIN_DEADLINE_S) -> None:
        """Let the share group process what remains: until its members have received nothing for so
        long that the locks of dead ones have run out, too."""
        names = self._client_controls.names_of_kind("share_consumer")
        if self._client_controls.names("share_consumer"):
            lock_s = ShareOptions.of(self._scenario.workload).lock_ms / 1000
            journals = [self._specs.journal(name) for name in names]
            await_drained(journals, quiet_s=lock_s + DRAIN_QUIET_S, deadline_s=deadline_s)

    def finish_apps(self, deadline_s: float = APP_DEADLINE_S) -> None:
        """Let the application process the remaining records, unless faults ended it for good; end
        it, and read its outputs. Outputs that cannot be read are a problem of the run."""
        if self._application is None:
            return
        if self._clients.running_clients(self._names(Stage.APPLICATION)):
            self._application.await_processed(deadline_s, self._restart_session)
        for name in self._clients.terminate(self._names(Stage.APPLICATION), APP_END_S):
            self._problems.append(f"application {name} did not end in {APP_END_S:g} s")
        if problem := self._application.save_outputs():
            self._problems.append(problem)

    def _restart_session(self, name: str) -> None:
        """Kill a session of the application, and start the next one."""
        self._client_controls.kill(name)
        self._client_controls.start_next_session(name)

    def finish_access_attempts(self, deadline_s: float = ACCESS_DEADLINE_S) -> None:
        """Continue the access attempts for a while after the last change of permissions:
        `unauthorised` allows a broker five seconds to apply it."""
        journals = [self._specs.journal(n) for n in self._client_controls.names_of_kind("visitor")]

        def has_passed() -> bool:
            entries = (entry for journal in journals for entry in JournalReader(journal))
            changes = (entry.complete_ns for entry in entries if isinstance(entry, Right))
            return time.monotonic() >= max(changes, default=0) / 1e9 + ACCESS_S

        until(has_passed, deadline_s=deadline_s, poll_s=ACCESS_POLL_S)

    def stop_consumers(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """End live readers, group members and observers."""
        self._terminate(self._names(Stage.READS, Stage.OBSERVATION), "consumer", deadline_s)

    def set_topics(self, topics: Sequence[TopicFact]) -> None:
        """Set the topics for the final reads, because topics may have grown."""
        self._specs.topics = tuple(topics)

    def final_reads(
        self, deadline_s: float, rounds: Iterable[Leaders] | None = None, *, cluster: str = EAST
    ) -> FinalReads:
        """Read every partition of a cluster from start to end, once for each item of `rounds`.

        An item maps partitions to their current leaders (see
        `leadership_rotation.leadership_rounds`); these partitions are read. Without `rounds`
        everything is read once under the current leaders. Stops early, with a sentence in
        `problems`, when the deadline passes or a broker does not become leader.
        """
        reader = FinalRounds(self._specs, self._clients, self._tails.acked_ends, cluster)
        return reader.run(rounds, deadline_s)

    def dump_sources(self) -> list[DumpSource]:
        """The running clients except applications, which belong to the user."""
        apps = self._names(Stage.APPLICATION)
        return self._clients.dump_sources([n for n in self._clients.names if n not in apps])

    def problems(self) -> list[str]:
        """Sentences for `RunFacts.problems`: clients that were killed, crashed or ended early."""
        tails = {
            name: log_tail(self._application.context.log(name))
            for name in self._names(Stage.APPLICATION)
            if self._application
        }
        return self._problems + self._clients.failures(tails)

    def stop(self) -> None:
        """Kill every remaining client; journals stay."""
        self._clients.kill_all()
        if self._application:
            self._application.close()
