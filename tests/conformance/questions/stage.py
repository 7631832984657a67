"""Topics that many questions share: made once a cluster, never changed by a question."""

from __future__ import annotations

from tests.conformance.questions.registry import RUN
from tests.conformance.records import NOW_MS, batch, produce
from tests.conformance.side import Side
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import InitProducerIdRequest

LAST = 14


def gives_producer_ids(side: Side) -> bool:
    """Broker 1 has a block of producer ids, which it fetches when the first one is asked for."""
    return side.make_once(_gives_producer_ids)


def _gives_producer_ids(side: Side) -> bool:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    side.until(lambda: side.get(request, 0).error_code != loading)
    return True


def filled(side: Side) -> str:
    """Partition 0: 15 records in 5 batches, led by 1; partition 1 empty, led by 2."""
    return side.make_once(_filled)


def _filled(side: Side) -> str:
    name = side.create(f"filled-{RUN}", [(1, 2), (2, 1)])
    for n in range(5):
        data = batch([b"%d-%d" % (n, m) for m in range(3)], at_ms=NOW_MS + 10_000 * n)
        side.ask(produce(name, data), 9)
    return name


def spread(side: Side) -> str:
    """Three partitions with three replicas each, led by 1, 2 and 3; empty."""
    return side.make_once(_spread)


def _spread(side: Side) -> str:
    return side.create(f"spread-{RUN}", [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
