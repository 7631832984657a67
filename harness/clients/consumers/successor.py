"""A consumer that goes on at the second cluster once the first one is dead.

    python -m urteil.harness.clients.consumers.successor SPEC.json

It joins the run's group in the second cluster, where MirrorMaker has committed the translated
offsets of the members in the first, and processes the mirrors from there.
"""

from __future__ import annotations

import time
from typing import Annotated

from msgspec import Meta

from urteil.chaos.link_probes import probe_broker
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.consumers.group_consumer import consume_in_group
from urteil.harness.clients.kind import Belongs, ClientKind, Stage
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import JournalWriter

SILENCE_S = 3.0
PROBE_S = 0.5


class SuccessorOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    successors: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="The number of consumers that go on at the second cluster once the first "
            "is dead.",
        ),
    ] = 0


def succeed(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Wait until no broker of the first cluster has answered for a while, then consume."""
    answered = time.monotonic()
    while not stop.is_set() and time.monotonic() < answered + SILENCE_S:
        if any(map(_answers, spec.other_bootstrap)):
            answered = time.monotonic()
        stop.wait(PROBE_S)
    if not stop.is_set():
        consume_in_group(spec, journal, stop)


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        probe_broker(host, int(port), timeout_s=PROBE_S)
    except OSError:
        return False
    return True


KIND = ClientKind(
    name="successor",
    about="Goes on at the second cluster, from translated offsets, once the first one is dead.",
    stage=Stage.READS,
    judged_by=("translated_too_far",),
    prefix="s",
    count=lambda scenario: (
        SuccessorOptions.of(scenario.workload).successors if scenario.second else 0
    ),
    work=succeed,
    options=(SuccessorOptions,),
    belongs=Belongs.TO_SECOND,
    group=lambda spec: spec.workload.group,
    handles_signals=True,
)

if __name__ == "__main__":
    run_client(KIND)
