"""Evidence of times in which nothing was in the way, and what was not done then."""

from __future__ import annotations

import json
from collections.abc import Callable

from urteil.suites.simulation.evidence import Evidence, Promises
from urteil.suites.simulation.history import Poll, Send
from urteil.suites.simulation.zookeeper import Change

PLACE = ("t", 0)
SINCE_S, ENDS_S = 10.0, 60.0
ACKED_S = 0.01
BROKER = "/brokers/ids/1"


def put(evidence: Evidence, at_s: float, path: str, content: dict[str, int] | None) -> None:
    """A version of a node; None deletes it."""
    data = None if content is None else json.dumps(content).encode()
    evidence.changes.append(Change(at_s, round(at_s * 1000), path, data, 0))


def be_quiet(evidence: Evidence) -> None:
    """The leader and the controller are there, and nothing hinders them from SINCE_S on."""
    put(evidence, SINCE_S, "/controller", {"brokerid": 2})
    put(evidence, SINCE_S, BROKER, {})
    evidence.promises = Promises(calm_s=SINCE_S, ends_s=ENDS_S)


def send_in_calm(evidence: Evidence, took_s: float = ACKED_S) -> None:
    """Twelve records of a producer and a reader that polls for them; the last one is acknowledged
    after so long."""
    be_quiet(evidence)
    before_s, evidence.final[PLACE] = SINCE_S + 1.5, [*evidence.final[PLACE]]
    for n in range(12):
        begin_s = SINCE_S + 2 + 2 * n
        end_s = begin_s + (took_s if n == 11 else ACKED_S)
        evidence.history.sends.append(
            Send("c", *PLACE, (f"c{n}",), begin_s, end_s, "fail", 100 + n, 1, attempts=1)
        )
        evidence.history.polls.append(
            Poll("r", n, *PLACE, 100 + n, 101 + n, 1, before_s, end_s + ACKED_S)
        )
        before_s = end_s + ACKED_S


def acknowledge(evidence: Evidence) -> None:
    """Those records were appended, as no log shows."""
    for each in evidence.history.sends:
        if each.client == "c":
            each.outcome = "ok"


def acknowledge_late(evidence: Evidence) -> None:
    send_in_calm(evidence, took_s=1.5)
    acknowledge(evidence)


def answer_fetches_late(evidence: Evidence) -> None:
    send_in_calm(evidence)
    acknowledge(evidence)
    last = evidence.history.polls[-1]
    evidence.history.polls[-1] = last._replace(complete_s=last.complete_s + 0.4)


def wait_for_ever(evidence: Evidence, *clients: str) -> None:
    be_quiet(evidence)
    evidence.history.producer_ends_s |= dict.fromkeys(clients, ENDS_S)
    evidence.history.sends += [
        Send(client, *PLACE, (f"{client}0",), SINCE_S + 1, ENDS_S - 1) for client in clients
    ]


def stall_a_partition(evidence: Evidence) -> None:
    wait_for_ever(evidence, "q", "s")


def stall_a_producer(evidence: Evidence) -> None:
    wait_for_ever(evidence, "q")


DAMAGE: dict[Callable[[Evidence], None], str] = {
    acknowledge_late: "slow_acknowledgement",
    answer_fetches_late: "slow_fetch",
    stall_a_partition: "stalled_partition",
    stall_a_producer: "stalled_producer",
}
