"""Counts every session epoch as the expected one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "requests of a fetch session may be lost, repeated or reordered"
MODELS = "KIP-227: session epochs that are not checked"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def find(sessions: Any, session_id: int, epoch: int, *, uses_ids: bool) -> Any:
            session = sessions._sessions.get(session_id)
            if session is None or session.epoch == epoch:
                return original(sessions, session_id, epoch, uses_ids=uses_ids)
            mark.hit()
            return session

        return find

    replace("urteil.broker.replication.fetch_sessions:FetchSessions.find", make)
