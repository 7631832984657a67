"""Registers a broker only the first time in its process."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker whose session expired does not register again"
MODELS = "KAFKA-7165: /brokers/ids/N not created again after an expiry"
SCENARIO = "sessions-expired"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def register(registration: Any) -> Any:
            if registration.epoch < 0:
                return await original(registration)
            mark.hit()
            return registration.epoch

        return register

    replace("urteil.broker.zookeeper.registration:Registration.register", make)
