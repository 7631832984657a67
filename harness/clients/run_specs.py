"""The specs and journals of the clients of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from urteil.harness.clients.kind import ClientKind
from urteil.harness.clients.options import LoadOptions
from urteil.harness.clients.spec import ClientSpec, FinalPass, client_number
from urteil.harness.scenario import Scenario, TopicFact

FLUSH_DEADLINE_S = 15.0


@dataclass(slots=True, kw_only=True)
class RunSpecs:
    """What the specs of all clients of a run have in common. `topics` may grow during the run."""

    scenario: Scenario
    run_dir: Path
    run_id: str
    bootstrap: tuple[str, ...]
    user_listeners: tuple[str, ...]
    topics: tuple[TopicFact, ...]

    def partitions(self) -> list[tuple[str, int]]:
        return [(topic.name, p) for topic in self.topics for p in range(topic.partitions)]

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
    ) -> ClientSpec:
        """The spec of one session of a client."""
        load = self.scenario.workload
        share = load.rate_records_per_s / max(1, load.producers)
        spec = ClientSpec(
            run=self.run_id,
            client=client,
            session=session,
            kind=kind.name,
            bootstrap=self.bootstrap,
            journal=str(self.journal(client)),
            topics=self._written_topics() if kind.only_written_topics else self.topics,
            workload=load,
            rate_records_per_s=share if kind.has_rate else 0.0,
            seed=self._seed(client, kind, session),
            records=self.records() if kind.has_rate else None,
            flush_deadline_s=FLUSH_DEADLINE_S,
            final=final,
            reads=reads,
            user_listeners=self.user_listeners,
        )
        return kind.complete(spec)

    def _seed(self, client: str, kind: ClientKind, session: int) -> int:
        """The seed of a client's choices. Each session of each client makes choices of its own."""
        first, number = self.scenario.seed * 1000, client_number(client)
        if kind.has_rate:
            return first + number - 1 + 100 * (session - 1)
        return first + 500 + session + 10 * number

    def _written_topics(self) -> tuple[TopicFact, ...]:
        """Topics that producers write to: not an application's, nor the registers of `commits`."""
        registers = self.topics[-1:] if self.scenario.workload.kind == "commits" else ()
        return tuple(t for t in self.topics if not t.copies and t not in registers)
