"""A fetch session goes on with whatever request names it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "requests of a fetch session may be lost, come twice or in any order"
MODELS = "the epochs of fetch sessions (KIP-227) that nobody checks"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Every epoch is the right one."""

    def make(original: Function) -> Function:
        def find(sessions: Any, session_id: int, epoch: int, *, uses_ids: bool) -> Any:
            session = sessions._sessions.get(session_id)
            if session is None or session.epoch == epoch:
                return original(sessions, session_id, epoch, uses_ids=uses_ids)
            mark.hit()
            return session

        return find

    replace("urteil.broker.server.fetch_sessions:FetchSessions.find", make)
