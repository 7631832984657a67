"""The final reads of a run: every partition from start to end, under one leadership after another.

A round starts one final reader, or with transactions one for each isolation level, and waits for
its end. The readers of the next round start meanwhile and wait for their specs, because the start
of a process takes longer than a round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kafka.errors import KafkaError

from urteil.chaos.observations import LabFailure, NotHealthy
from urteil.chaos.topology import EAST
from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.processes import Clients
from urteil.harness.clients.run_specs import RunSpecs
from urteil.harness.clients.spec import FinalPass, Goal
from urteil.harness.clients.workload_kinds import is_transactional
from urteil.harness.evidence.journal import JournalReader, PassBegin, PassEnd

SETTLE_FIRST_S = 10.0
SETTLE_LATER_S = 3.0
SETTLE_UNSURE_S = 1.0
"""The time that a leader has to report the acknowledged end: in the first round, in later rounds,
and where acknowledgements do not promise replication."""
END_GRACE_S = 5.0
ALL = -1

Leaders = Mapping[tuple[str, int], int]
"""By (topic, partition), the id of the leader."""
AckedEnds = Callable[[], Mapping[tuple[str, int], int]]
"""Returns one past the highest acknowledged offset of each partition."""


@dataclass(slots=True)
class FinalReads:
    """The result of the final reads.

    `leaders` has, for each partition, the brokers under which a pass was complete. `problems` has a
    sentence for each incomplete read.
    """

    leaders: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    rounds: int = 0
    problems: list[str] = field(default_factory=list)


class FinalRounds:
    """Runs the rounds of one cluster of a run and collects their result."""

    def __init__(
        self, specs: RunSpecs, clients: Clients, acked_ends: AckedEnds, cluster: str = EAST
    ) -> None:
        self._specs = specs
        self._cluster = cluster
        self._partitions = specs.partitions(cluster)
        self._clients = clients
        self._acked_ends = acked_ends
        self._kind = client_kinds()["final"]
        self._load = specs.scenario.workload
        self._reads = FinalReads()

    def run(self, rounds: Iterable[Leaders] | None, deadline_s: float) -> FinalReads:
        """One round for each item of `rounds`, or one under the current leaders. Stops early, with
        a problem, when the deadline passes or a broker does not become leader."""
        deadline = time.monotonic() + deadline_s
        everything: Leaders = {slot: -1 for slot in self._partitions}
        reads = self._reads
        try:
            for leaders in rounds if rounds is not None else [everything]:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    reads.problems.append(f"the final reads' deadline of {deadline_s:g} s passed")
                    break
                self._run_round(leaders, remaining_s)
                for client in self._readers(reads.rounds + 1):
                    self._clients.prepare(client, self._kind)
        except (LabFailure, NotHealthy, KafkaError) as failure:
            reads.problems.append(f"the final reads ended early: {failure}")
        for client in self._readers(reads.rounds + 1):
            self._clients.discard(client)
        missing = [slot for slot in self._partitions if not reads.leaders.get(slot)]
        for topic, partition in missing:
            reads.problems.append(f"no final pass over {topic}-{partition} was complete")
        return reads

    def _run_round(self, leaders: Leaders, remaining_s: float) -> None:
        acked = self._acked_ends()
        goals = tuple(
            Goal(topic=t, partition=p, acked_end=acked.get((t, p), 0), leader=leaders[t, p])
            for t, p in self._partitions
            if (t, p) in leaders
        )
        settle_s = SETTLE_LATER_S if self._reads.rounds else SETTLE_FIRST_S
        if self._load.acks != ALL:
            settle_s = SETTLE_UNSURE_S
        self._reads.rounds += 1
        final = FinalPass(
            number=self._reads.rounds, goals=goals, deadline_s=remaining_s, settle_s=settle_s
        )
        clients = self._readers(self._reads.rounds)
        for client, isolation in clients.items():
            spec = self._specs.spec(
                client, self._kind, final=final, reads=isolation, cluster=self._cluster
            )
            self._clients.start(spec, self._kind)
        for client in self._clients.await_end(list(clients), remaining_s + END_GRACE_S):
            self._reads.problems.append(f"final reader {client} hung and was killed")
        for client in clients:
            self._record_passes(client)

    def _readers(self, number: int) -> dict[str, str]:
        """The readers of a round and their isolation levels: with transactions, both."""
        place = "" if self._cluster == EAST else f"{self._cluster}-"
        name = f"{self._kind.prefix}{place}{number}"
        if not is_transactional(self._load.kind):
            return {name: ""}
        return {name: "read_uncommitted", f"{name}-committed": "read_committed"}

    def _record_passes(self, client: str) -> None:
        journal = self._specs.journal(client)
        if not journal.exists():
            return
        final: set[int] = set()
        for entry in JournalReader(journal):
            if isinstance(entry, PassBegin) and entry.final:
                final.add(entry.pass_)
            elif isinstance(entry, PassEnd) and entry.complete and entry.pass_ in final:
                slot = (entry.topic, entry.partition)
                leader = -1 if entry.leader is None else entry.leader
                self._reads.leaders.setdefault(slot, set()).add(leader)
