"""One round of final reads: every partition from its start to its leader's end.

    python -m urteil.harness.clients.consumers.final_reader SPEC.json

A pass is complete when it reaches the end offset that its leader reported before the pass.
"""

from __future__ import annotations

import time

from kafka import TopicPartition
from kafka.errors import KafkaError

from urteil.chaos.waiting import until
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.consumers.journaling_consumer import JournalingConsumer
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.spec import ClientSpec, FinalPass, consumer_config
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import JournalWriter

RETRY_S = 0.05


def read_finally(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Read the partitions of `spec.final` once. A pass that the deadline cuts is incomplete."""
    if spec.final is None:
        raise ValueError("a final reader needs a round (`final`) in its SPEC.json")
    deadline = time.monotonic() + spec.final.deadline_s
    consumer = JournalingConsumer(
        spec, journal, consumer_config(spec), first_pass=spec.final.number * 1000
    )
    goals = [TopicPartition(goal.topic, goal.partition) for goal in spec.final.goals]
    consumer.assign(goals)
    ends = _settled_ends(spec.final, consumer, goals, stop, deadline)
    starts = _offsets(consumer, "earliest", list(ends), stop, deadline)
    for tp, start in starts.items():
        consumer.begin(tp, start, max(start, ends[tp]), final=True)
    while consumer.open_passes():
        for tp in consumer.open_passes():
            if consumer.position(tp) >= ends[tp]:
                consumer.end(tp, complete=True)
        if not consumer.open_passes():
            break
        if stop.is_set() or time.monotonic() > deadline:
            for tp in consumer.open_passes():
                consumer.end(tp, complete=False)
            break
        consumer.poll()
    consumer.close()


def _settled_ends(
    final: FinalPass,
    consumer: JournalingConsumer,
    goals: list[TopicPartition],
    stop: Stop,
    deadline: float,
) -> dict[TopicPartition, int]:
    """The leaders' end offsets, when none is below the acknowledged end or the time has passed.

    A new leader learns its high watermark from its followers' next fetches, so a low end right
    after an election is not a loss yet.
    """
    acked = {TopicPartition(goal.topic, goal.partition): goal.acked_end for goal in final.goals}
    return until(
        lambda: _offsets(consumer, "latest", goals, stop, deadline),
        lambda ends: all(ends.get(tp, -1) >= acked[tp] for tp in goals),
        deadline_s=min(deadline - time.monotonic(), final.settle_s),
        poll_s=RETRY_S,
        stop=stop,
    )


def _offsets(
    consumer: JournalingConsumer, query: str, tps: list[TopicPartition], stop: Stop, deadline: float
) -> dict[TopicPartition, int]:
    """The offsets of partitions. Empty when the leaders do not report them by the deadline."""
    request = consumer.latest if query == "latest" else consumer.earliest

    def read() -> dict[TopicPartition, int]:
        if time.monotonic() > deadline or stop.is_set():
            return {}
        try:
            return request(tps)
        except KafkaError as error:
            consumer.note_failure(error)
            return {}

    if not tps:
        return {}
    return until(read, deadline_s=deadline - time.monotonic(), poll_s=RETRY_S, stop=stop)


KIND = ClientKind(
    name="final",
    about="Reads every partition once from its start to its leader's end, after the load.",
    stage=Stage.FINAL_READS,
    judged_by=("lost_write", "unseen"),
    prefix="final-",
    count=lambda _: 0,
    work=read_finally,
)

if __name__ == "__main__":
    run_client(KIND)
