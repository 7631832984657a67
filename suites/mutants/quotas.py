"""Quotas and throttling."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import PROCESSOR_TIME, QUOTAS


@mutant(
    about="replication throttles have no effect",
    models="KIP-73: a reassignment without a limit",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def replication_unthrottled(mark: Mark) -> None:
    """Records no bytes of throttled replicas."""

    def make(original: Function) -> Function:
        def record(throttle: Any, size: int) -> None:
            mark.hit()

        return record

    replace("urteil.broker.replication.replication_throttle:Throttle.record", make)


@mutant(
    about="request_percentage is ignored",
    models="KIP-124: a quota that is not enforced",
    scenario="known-answers",
    guarantee="wrong_answer",
    unsimulated=PROCESSOR_TIME,
)
def requests_unthrottled(mark: Mark) -> None:
    """Returns no delay for request time."""

    def make(original: Function) -> Function:
        def spend(throttle: Any, quota: Any, user: str, client_id: str, amount: float) -> int:
            wait_ms = int(original(throttle, quota, user, client_id, amount))
            if quota.name != "REQUEST" or not wait_ms:
                return wait_ms
            mark.hit()
            return 0

        return spend

    replace("urteil.broker.quotas.throttle:Throttle.spend", make)


@mutant(
    about="clients are delayed only above twice their quota",
    models="a rate measured over half of its windows",
    scenario="quotas",
    guarantee="quota_exceeded",
    unsimulated=QUOTAS,
)
def quotas_twice_as_large(mark: Mark) -> None:
    """Compares the rate with twice the quota."""

    def make(original: Function) -> Function:
        def throttle(rate: Any, limit: float, now_ms: float) -> int:
            mark.hit()
            return int(original(rate, 2 * limit, now_ms))

        return throttle

    replace("urteil.broker.base.rates:Rate.throttle_ms", make)
