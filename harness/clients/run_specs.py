"""The specs and journals of the clients of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from urteil.chaos.topology import EAST, WEST
from urteil.harness.clients.kind import Belongs, ClientKind
from urteil.harness.clients.options import LoadOptions
from urteil.harness.clients.spec import ClientSpec, FinalPass, client_number
from urteil.harness.scenario import Scenario, TopicFact

FLUSH_DEADLINE_S = 15.0


@dataclass(slots=True, kw_only=True)
class RunSpecs:
    """What the specs of all clients of a run have in common. `topics` may grow during the run.
    `second_bootstrap` and `wan_bootstrap` are empty unless the run has a second cluster."""

    scenario: Scenario
    run_dir: Path
    run_id: str
    bootstrap: tuple[str, ...]
    user_listeners: tuple[str, ...]
    topics: tuple[TopicFact, ...]
    second_bootstrap: tuple[str, ...] = ()
    wan_bootstrap: tuple[str, ...] = ()

    def partitions(self, cluster: str = EAST) -> list[tuple[str, int]]:
        """The partitions of the topics in a cluster."""
        topics = [topic for topic in self.topics if topic.cluster == cluster]
        return [(topic.name, p) for topic in topics for p in range(topic.partitions)]

    def addresses(self, cluster: str) -> tuple[str, ...]:
        """The brokers' addresses for the clients of a cluster."""
        return self.second_bootstrap if cluster == WEST else self.bootstrap

    def journal(self, client: str) -> Path:
        return self.run_dir / "journal" / f"{client}.jsonl"

    def records(self) -> int | None:
        """The number of records of each producer of a bulk load; None for other loads."""
        load = self.scenario.workload
        if load.kind != "bulk":
            return None
        return LoadOptions.of(load).records // max(1, load.producers)

    def spec(
        self,
        client: str,
        kind: ClientKind,
        *,
        session: int = 1,
        final: FinalPass | None = None,
        reads: str = "",
        cluster: str = "",
    ) -> ClientSpec:
        """The spec of one session of a client. `cluster` overrides the one that it belongs to."""
        load = self.scenario.workload
        cluster = cluster or self.cluster_of(client, kind)
        share = load.rate_records_per_s / max(1, load.producers)
        spec = ClientSpec(
            run=self.run_id,
            client=client,
            session=session,
            kind=kind.name,
            bootstrap=self.addresses(cluster),
            journal=str(self.journal(client)),
            topics=tuple(topic for topic in self._topics(kind) if topic.cluster == cluster),
            workload=load,
            rate_records_per_s=share if kind.has_rate else 0.0,
            seed=self._seed(client, kind, session),
            records=self.records() if kind.has_rate else None,
            flush_deadline_s=FLUSH_DEADLINE_S,
            final=final,
            reads=reads,
            user_listeners=self.user_listeners,
            other_bootstrap=self.bootstrap if cluster == WEST else (),
        )
        return kind.complete(spec)

    def cluster_of(self, client: str, kind: ClientKind) -> str:
        """The cluster of a client: that of its turn, among those that have topics for its kind."""
        used = {topic.cluster for topic in self._topics(kind)}
        places = [place for place in (EAST, WEST) if place in used]
        if kind.belongs is Belongs.TO_SECOND:
            return WEST
        if kind.belongs is Belongs.TO_FIRST or not places:
            return EAST
        return places[(client_number(client) - 1) % len(places)]

    def _seed(self, client: str, kind: ClientKind, session: int) -> int:
        """The seed of a client's choices. Each session of each client makes choices of its own."""
        first, number = self.scenario.seed * 1000, client_number(client)
        if kind.has_rate:
            return first + number - 1 + 100 * (session - 1)
        return first + 500 + session + 10 * number

    def _topics(self, kind: ClientKind) -> tuple[TopicFact, ...]:
        """The topics for clients of a kind. Producers do not write to those of an application, nor
        to the registers of `commits`."""
        if not kind.only_written_topics:
            return self.topics
        registers = self.topics[-1:] if self.scenario.workload.kind == "commits" else ()
        return tuple(t for t in self.topics if not t.copies and t not in registers)
