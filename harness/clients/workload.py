"""The workload of a run: starts the clients, reports their progress and runs the final reads."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafka.errors import KafkaError

from urteil.chaos.observations import LabFailure, NotHealthy
from urteil.chaos.waiting import until
from urteil.harness.clients.application import await_copied, check_topics, command
from urteil.harness.clients.client_controls import WorkloadClients
from urteil.harness.clients.consumers.read_progress import ReadProgress, await_read
from urteil.harness.clients.journal_tail import Progress, Tails
from urteil.harness.clients.processes import Clients, Spawn, spawn_process
from urteil.harness.clients.spec import (
    ClientSpec,
    FinalPass,
    Goal,
    transaction_timeout_ms,
    transactional_id,
)
from urteil.harness.clients.transactions.open_transactions import await_no_open_transactions
from urteil.harness.clients.transactions.transactional_id_probe import initialise_ids
from urteil.harness.dependencies.kafka import kafka_classpath
from urteil.harness.evidence.journal import JournalReader, PassBegin, PassEnd, Right
from urteil.harness.scenario import Scenario, TopicFact
from urteil.harness.stack_dumps import DumpSource

FLUSH_DEADLINE_S = 15.0
STOP_DEADLINE_S = 5.0
BULK = "100000"
BULK_DEADLINE_S = 60.0
BULK_LEAST_PER_S = 1_000
APP_DEADLINE_S = 120.0
APP_END_S = 15.0
ACCESS_S = 8.0
"""Three seconds of attempts after the five that `unauthorised` allows a broker."""
ACCESS_DEADLINE_S = 40.0
ACCESS_POLL_S = 0.5
READ_DEADLINE_S = 120.0
TXN_END_S = 30.0
TXN_SETTLE_S = 30.0
SETTLE_FIRST_S = 10.0
SETTLE_LATER_S = 3.0
SETTLE_UNSURE_S = 1.0
ALL = -1
POLL_S = 0.05
END_GRACE_S = 5.0

Leaders = Mapping[tuple[str, int], int]
"""By (topic, partition), the id of the leader."""


@dataclass(slots=True)
class FinalReads:
    """The result of the final reads.

    `leaders` has, for each partition, the brokers under which a pass was complete. `problems` has a
    sentence for each incomplete read.
    """

    leaders: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    rounds: int = 0
    problems: list[str] = field(default_factory=list)


class Workload:
    """The clients of one run. One thread starts and ends them; counters are thread-safe.

    Options of the workload, with defaults:

    - all loads: `retries`, `linger_ms`, `batch_size`, `compression_type` as in kafka-python;
      `fetch_bytes`, the size of fetches of readers and members; `old_clients`, 1 gives every second
      reader and producer the protocol of 0.10.1; `probe`, 0 omits the client that reads leaders and
      end offsets from all brokers.
    - `compacted`: `deletes`, the share of tombstones (0.2).
    - group members: `commit`, `before` or `after` the processing (after); `assignor`, `range` or
      `cooperative`; `session_timeout_ms`, `max_poll_interval_ms`, `max_poll_records`,
      `zombie_commits`, `static`; `passers_by`, the number of abandoned joins (0); `members`, the
      number of members in `mixed` (2).
    - `commits`: `commits_per_s` of each committer (20); `deletions`, 1 adds a client that deletes
      offsets and groups of its own; `brief_ms` adds two clients whose offsets expire after this
      time, or when their group has no member.
    - `transactions`: `copiers` (1), `txn_records` (8), `aborts` (0.25), `hold_ms` from a
      transaction's last record to its end (0), `transaction_timeout_ms` (8000), `offset_reads_ms`,
      the interval of reads of the group's offsets (250); the numbers of special cases (0):
      `delayed_ends`, `late_produces`, `overdue_txns`, `takeovers`, `rests`, `zombie_offsets`,
      `present_offsets`.
    - `bulk`: `records`, the number of records in all (100000).
    - special clients: `corrupt_batches` and `corrupt_every_ms`, invalid batches; `repeated_rounds`,
      `repeated_every_ms` and `repeated_late`, resent batches; `questions`, the number of rounds of
      questions with known answers.
    """

    def __init__(
        self,
        scenario: Scenario,
        run_dir: Path,
        bootstrap: Sequence[str],
        topics: Sequence[TopicFact],
        run_id: str,
        *,
        user_listeners: Sequence[str] = (),
        spawn: Spawn = spawn_process,
    ) -> None:
        self._scenario = scenario
        self._run_dir = run_dir
        self._bootstrap = tuple(bootstrap)
        self._topics = tuple(topics)
        self._run_id = run_id
        self._user_listeners = tuple(user_listeners)
        self._clients = Clients(run_dir, spawn)
        load = scenario.workload
        in_transactions = load.kind == "transactions"
        first = "t" if in_transactions else "p"
        self._sending_kind = "txn" if in_transactions else "producer"
        self._producers = [f"{first}{n}" for n in range(1, load.producers + 1)]
        self._copiers = int(load.options.get("copiers", "1")) if len(topics) > 1 else 0
        self._copiers = self._copiers if in_transactions else 0
        self._special_clients = {
            name: kind
            for name, kind, option in (
                ("raw1", "raw", "corrupt_batches"),
                ("repeater1", "repeater", "repeated_rounds"),
                ("late1", "late", "delayed_ends"),
                ("late1", "late", "late_produces"),
                ("late1", "late", "overdue_txns"),
                ("late1", "late", "takeovers"),
                ("late1", "late", "rests"),
                ("zombie1", "zombie", "zombie_offsets"),
                ("forgetter1", "forgetter", "deletions"),
                ("brief1", "brief", "brief_ms"),
                ("active1", "active", "brief_ms"),
                ("passer1", "passer", "passers_by"),
                ("examiner1", "examiner", "questions"),
            )
            if int(load.options.get(option, "0"))
        }
        self._committers = load.consumers if load.kind == "commits" else 0
        self._readers = 0 if load.kind in ("group", "commits") else load.consumers
        self._members = load.consumers if load.kind == "group" else 0
        if load.kind == "mixed":
            self._members = int(load.options.get("members", "2"))
        self._probes = ["probe"] if load.options.get("probe", "1") != "0" else []
        self._visitors = ["visitor"] if self._user_listeners else []
        self._tails = Tails([self._journal(name) for name in self._producers])
        self._problems: list[str] = []
        self._client_controls = WorkloadClients(run_dir, self._clients, self._start_one)
        self._apps = 0
        if load.client == "verifiable":
            kafka_classpath()  # fetched once, before the clients start
        if load.kind == "pipeline":
            check_topics(self._topics)
            self._apps = int(load.options.get("apps", "2"))

    def start(self) -> None:
        """Start readers, then producers; returns at once."""
        for number in range(1, self._readers + 1):
            self._start_one("consumer", f"c{number}", 1)
        for number in range(1, self._members + 1):
            self._start_one("group", f"g{number}", 1)
        for number in range(1, self._copiers + 1):
            self._start_one("copier", f"x{number}", 1)
        for number in range(1, self._committers + 1):
            self._start_one("committer", f"k{number}", 1)
        if self._members or self._copiers or self._committers:
            self._start_one("offsets", "o1", 1)
        for number in range(1, self._apps + 1):
            self._start_one("app", f"a{number}", 1)
        for name in self._producers:
            self._start_one(self._sending_kind, name, 1)
        for name, kind in self._special_clients.items():
            self._clients.start(self._spec(name, kind))
        for name in self._probes:
            self._clients.start(self._spec(name, "probe", seed=self._scenario.seed))
        for name in self._visitors:
            self._clients.start(self._spec(name, "visitor", seed=self._scenario.seed))

    def controls(self) -> WorkloadClients:
        """The operations of chaos on these clients."""
        return self._client_controls

    def _start_one(self, kind: str, name: str, session: int) -> None:
        """Start a client, or the next session of one."""
        load, rate, seed = self._scenario.workload, 0.0, 0
        if kind == "app":
            self._clients.run(name, command(self._scenario, self._bootstrap, name))
            self._client_controls.register(name, kind)
            return
        if kind in ("producer", "txn"):
            rate = load.rate_records_per_s / max(1, load.producers)
            number = self._producers.index(name.partition(".")[0])
            seed = self._scenario.seed * 1000 + number + 100 * (session - 1)
            if session > 1:
                self._tails.add(self._journal(name))
        if kind in ("copier", "committer"):
            seed = self._scenario.seed * 1000 + 500 + session + 10 * int(name.partition(".")[0][1:])
        self._clients.start(self._spec(name, kind, session=session, rate=rate, seed=seed))
        self._client_controls.register(name, kind)

    def progress(self) -> Progress:
        """Counts over all producers so far."""
        return self._tails.progress()

    def acked(self) -> int:
        """The number of records acknowledged so far."""
        return self.progress().acked

    def await_acked(self, records: int, *, since_ns: int = 0, deadline_s: float) -> bool:
        """Wait until `records` were acknowledged since `since_ns`. False if the deadline passes
        first."""
        return until(
            lambda: self.acked_since(since_ns) >= records, deadline_s=deadline_s, poll_s=POLL_S
        )

    def acked_since(self, since_ns: int) -> int:
        """The number of records acknowledged at `since_ns` (CLOCK_MONOTONIC) or later."""
        return self._tails.acked_since(since_ns)

    def stop_producers(self, deadline_s: float = 2 * FLUSH_DEADLINE_S) -> None:
        """Let producers flush and end. A producer past the deadline is killed; the outcome of its
        open sends is unknown. Permissions change for the last time: see `finish_access_attempts`.
        """
        for name in self._visitors:
            self._clients.send_signal(name, signal.SIGUSR1)
        for name in self._clients.terminate(self._sending(), deadline_s):
            self._problems.append(f"producer {name} did not end in {deadline_s:g} s and was killed")

    def finish_transactions(self, *, whole: bool = True) -> None:
        """End copiers, then wait until no transaction is open; transactions of dead clients last
        until their timeout. If none is open and the cluster is healthy (`whole`), initialise each
        transactional id once more, which would end an open transaction. `hanging_txn` judges what
        remains open."""
        load = self._scenario.workload
        if load.kind != "transactions":
            return
        names = self._client_controls.names_of_kind("copier")
        for name in self._clients.terminate(names, TXN_END_S):
            self._problems.append(f"copier {name} did not end in {TXN_END_S:g} s and was killed")
        deadline_s = transaction_timeout_ms(load) / 1000 + TXN_SETTLE_S
        open_partitions = await_no_open_transactions(
            self._bootstrap, self._partitions(), deadline_s=deadline_s
        )
        if whole and not open_partitions:
            ids = {transactional_id(self._spec(one, "txn")) for one in (*self._sending(), *names)}
            timeout_ms = transaction_timeout_ms(load)
            acts = initialise_ids(self._bootstrap, ids, timeout_ms, deadline_s=deadline_s)
            self._client_controls.record_acts(acts)

    def _records(self) -> int | None:
        """The number of records of each producer of a bulk load; None for other loads."""
        load = self._scenario.workload
        if load.kind != "bulk":
            return None
        return int(load.options.get("records", BULK)) // max(1, load.producers)

    def finish_bulk(self) -> None:
        """Wait until all records of a bulk load are completed."""
        records = (self._records() or 0) * len(self._producers)

        def is_completed() -> bool:
            progress = self.progress()
            return progress.invoked >= records and not progress.outstanding

        deadline_s = BULK_DEADLINE_S + records / BULK_LEAST_PER_S
        if records and not until(is_completed, deadline_s=deadline_s, poll_s=POLL_S):
            self._problems.append(f"not all of {records} records were sent in time")

    def finish_reading(self, deadline_s: float = READ_DEADLINE_S) -> None:
        """Let live readers and the group read to the end, unless they get nothing more, which
        `no_delivery` judges. Bulk loads and transactions have ends of their own."""
        running = self._client_controls.names("consumer"), self._client_controls.names("group")
        if self._scenario.workload.kind in ("bulk", "transactions") or not any(running):
            return
        readers = [ReadProgress([self._journal(name)]) for name in running[0]]
        if running[1]:
            names = self._client_controls.names_of_kind("group")
            readers.append(ReadProgress([self._journal(name) for name in names]))
        await_read(self._bootstrap, self._partitions(), readers, deadline_s=deadline_s)

    def finish_apps(self, deadline_s: float = APP_DEADLINE_S) -> None:
        """Let the application copy the remaining records, then end it."""
        names = self._client_controls.names_of_kind("app")
        if not names:
            return
        await_copied(
            [self._journal(name) for name in self._client_controls.names_of_kind("producer")],
            [self._journal(name) for name in self._client_controls.names_of_kind("consumer")],
            self._run_id,
            deadline_s=deadline_s,
        )
        for name in self._clients.terminate(names, APP_END_S):
            self._problems.append(f"application {name} did not end in {APP_END_S:g} s")

    def finish_access_attempts(self, deadline_s: float = ACCESS_DEADLINE_S) -> None:
        """Continue the access attempts for a while after the last change of permissions:
        `unauthorised` allows a broker five seconds to apply it."""

        def has_passed() -> bool:
            entries = (one for name in self._visitors for one in JournalReader(self._journal(name)))
            changes = (one.complete_ns for one in entries if isinstance(one, Right))
            return time.monotonic() >= max(changes, default=0) / 1e9 + ACCESS_S

        until(has_passed, deadline_s=deadline_s, poll_s=ACCESS_POLL_S)

    def stop_consumers(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """End live readers and group members."""
        kinds = ("consumer", "group", "offsets", "committer")
        names = [name for kind in kinds for name in self._client_controls.names_of_kind(kind)]
        for name in self._clients.terminate([*names, *self._probes, *self._visitors], deadline_s):
            self._problems.append(f"consumer {name} did not end in {deadline_s:g} s and was killed")

    def set_topics(self, topics: Sequence[TopicFact]) -> None:
        """Set the topics for the final reads, because topics may have grown."""
        self._topics = tuple(topics)

    def final_reads(self, deadline_s: float, rounds: Iterable[Leaders] | None = None) -> FinalReads:
        """Read every partition from start to end, once for each item of `rounds`.

        An item maps partitions to their current leaders (see
        `leadership_rotation.leadership_rounds`); these partitions are read. Without `rounds`
        everything is read once under the current leaders. Stops early, with a sentence in
        `problems`, when the deadline passes or a broker does not become leader.
        """
        deadline = time.monotonic() + deadline_s
        everything: Leaders = {slot: -1 for slot in self._partitions()}
        reads = FinalReads()
        try:
            for leaders in rounds if rounds is not None else [everything]:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    reads.problems.append(f"the final reads' deadline of {deadline_s:g} s passed")
                    break
                self._final_round(reads, leaders, remaining_s)
                for client in self._final_readers(reads.rounds + 1):
                    self._clients.prepare(client, "final")
        except (LabFailure, NotHealthy, KafkaError) as failure:
            reads.problems.append(f"the final reads ended early: {failure}")
        for client in self._final_readers(reads.rounds + 1):
            self._clients.discard(client)
        missing = [slot for slot in self._partitions() if not reads.leaders.get(slot)]
        for topic, partition in missing:
            reads.problems.append(f"no final pass over {topic}-{partition} was complete")
        return reads

    def _sending(self) -> list[str]:
        sending = self._client_controls.names_of_kind(self._sending_kind)
        return [*sending, *self._special_clients]

    def dump_sources(self) -> list[DumpSource]:
        """The running clients except applications, which belong to the user."""
        apps = self._client_controls.names_of_kind("app")
        return self._clients.dump_sources([one for one in self._clients.names if one not in apps])

    def problems(self) -> list[str]:
        """Sentences for `RunFacts.problems`: clients that were killed, crashed or ended early."""
        return self._problems + self._clients.failures()

    def stop(self) -> None:
        """Kill every remaining client; journals stay."""
        self._clients.kill_all()

    def _partitions(self) -> list[tuple[str, int]]:
        return [(topic.name, p) for topic in self._topics for p in range(topic.partitions)]

    def _journal(self, client: str) -> Path:
        return self._run_dir / "journal" / f"{client}.jsonl"

    def _final_round(self, reads: FinalReads, leaders: Leaders, remaining_s: float) -> None:
        acked = self._tails.acked_ends()
        goals = tuple(
            Goal(topic=t, partition=p, acked_end=acked.get((t, p), 0), leader=leaders[t, p])
            for t, p in self._partitions()
            if (t, p) in leaders
        )
        settle_s = SETTLE_LATER_S if reads.rounds else SETTLE_FIRST_S
        if self._scenario.workload.acks != ALL:
            settle_s = SETTLE_UNSURE_S
        reads.rounds += 1
        final = FinalPass(
            number=reads.rounds, goals=goals, deadline_s=remaining_s, settle_s=settle_s
        )
        clients = self._final_readers(reads.rounds)
        for client, isolation in clients.items():
            self._clients.start(self._spec(client, "final", final=final, reads=isolation))
        for client in self._clients.await_end(list(clients), remaining_s + END_GRACE_S):
            reads.problems.append(f"final reader {client} hung and was killed")
        for client in clients:
            self._record_passes(reads, client)

    def _final_readers(self, number: int) -> dict[str, str]:
        """The readers of a final round and their isolation levels: with transactions, both."""
        if self._scenario.workload.kind != "transactions":
            return {_final(number): ""}
        return {
            _final(number): "read_uncommitted",
            f"{_final(number)}-committed": "read_committed",
        }

    def _record_passes(self, reads: FinalReads, client: str) -> None:
        if not self._journal(client).exists():
            return
        final: set[int] = set()
        for entry in JournalReader(self._journal(client)):
            if isinstance(entry, PassBegin) and entry.final:
                final.add(entry.pass_)
            elif isinstance(entry, PassEnd) and entry.complete and entry.pass_ in final:
                slot = (entry.topic, entry.partition)
                leader = -1 if entry.leader is None else entry.leader
                reads.leaders.setdefault(slot, set()).add(leader)

    def _written_topics(self) -> tuple[TopicFact, ...]:
        """Topics that producers write to: not an application's, nor the registers of `commits`."""
        registers = self._topics[-1:] if self._scenario.workload.kind == "commits" else ()
        return tuple(t for t in self._topics if not t.copies and t not in registers)

    def _spec(
        self,
        client: str,
        kind: str,
        *,
        session: int = 1,
        rate: float = 0.0,
        seed: int = 0,
        final: FinalPass | None = None,
        reads: str = "",
    ) -> ClientSpec:
        return ClientSpec(
            run=self._run_id,
            client=client,
            session=session,
            kind=kind,
            bootstrap=self._bootstrap,
            journal=str(self._journal(client)),
            topics=self._topics if kind != "producer" else self._written_topics(),
            workload=self._scenario.workload,
            rate_records_per_s=rate,
            seed=seed,
            records=self._records() if kind == "producer" else None,
            flush_deadline_s=FLUSH_DEADLINE_S,
            final=final,
            reads=reads,
            user_listeners=self._user_listeners,
        )


def _final(round_number: int) -> str:
    return f"final-{round_number}"
