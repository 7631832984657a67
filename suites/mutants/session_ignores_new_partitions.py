"""Removes partitions from a consumer's session that its first request lacked."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a consumer's fetch session ignores partitions that are added later"
MODELS = "KIP-227: a fetch session that is not updated"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def update(session: Any, request: Any, resolve: Any) -> None:
            known = set(session._cached)
            original(session, request, resolve)
            new = set(session._cached) - known
            if new and not session.is_privileged:
                mark.hit()
                for key in new:
                    del session._cached[key]

        return update

    replace("urteil.broker.replication.fetch_sessions:FetchSession.update", make)
