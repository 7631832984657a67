"""One round of final reads: every partition from its start to its leader's end.

    python -m urteil.harness.clients.consumers.final_reader SPEC.json

A pass is complete when it arrived at the end that its leader had reported before it began.
"""

from __future__ import annotations

import time

from kafka import TopicPartition
from kafka.errors import KafkaError

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.consumers.journaling_consumer import Sweeper
from urteil.harness.clients.spec import ClientSpec, FinalPass
from urteil.harness.evidence.journal import JournalWriter

RETRY_S = 0.05


def read_finally(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Sweep the partitions of `spec.final` once; passes that the deadline cuts are incomplete."""
    if spec.final is None:
        raise ValueError("a final reader needs the round it belongs to")
    deadline = time.monotonic() + spec.final.deadline_s
    sweeper = Sweeper(spec, journal, first_pass=spec.final.number * 1000)
    goals = [TopicPartition(goal.topic, goal.partition) for goal in spec.final.goals]
    sweeper.assign(goals)
    ends = _settled_ends(spec.final, sweeper, goals, stop, deadline)
    starts = _offsets(sweeper, "earliest", list(ends), stop, deadline)
    for tp, start in starts.items():
        sweeper.begin(tp, start, max(start, ends[tp]), final=True)
    while sweeper.swept():
        for tp in sweeper.swept():
            if sweeper.position(tp) >= ends[tp]:
                sweeper.end(tp, complete=True)
        if not sweeper.swept():
            break
        if stop.asked() or time.monotonic() > deadline:
            for tp in sweeper.swept():
                sweeper.end(tp, complete=False)
            break
        sweeper.poll()
    sweeper.close()


def _settled_ends(
    final: FinalPass, sweeper: Sweeper, goals: list[TopicPartition], stop: Stop, deadline: float
) -> dict[TopicPartition, int]:
    """The leaders' ends, once none lies below what was acknowledged or they had their time.

    A new leader learns its high watermark from its followers' next fetches, so a short end right
    after an election is no loss yet.
    """
    acked = {TopicPartition(goal.topic, goal.partition): goal.acked_end for goal in final.goals}
    settled = min(deadline, time.monotonic() + final.settle_s)
    while True:
        ends = _offsets(sweeper, "latest", goals, stop, deadline)
        short = [tp for tp in goals if ends.get(tp, -1) < acked[tp]]
        if not short or stop.asked() or time.monotonic() > settled:
            return ends
        stop.wait(RETRY_S)


def _offsets(
    sweeper: Sweeper, query: str, tps: list[TopicPartition], stop: Stop, deadline: float
) -> dict[TopicPartition, int]:
    ask = sweeper.latest if query == "latest" else sweeper.earliest
    while tps and not stop.asked() and time.monotonic() < deadline:
        try:
            return ask(tps)
        except KafkaError as error:
            sweeper.failed(error)
            stop.wait(RETRY_S)
    return {}


if __name__ == "__main__":
    run_client(read_finally)
