"""Requests of a real admin client, which are repeated until their effect is seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, UnknownBrokerIdError

from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.capabilities import Capability
from urteil.chaos.waiting import retry, until
from urteil.harness.cluster.administration.act_log import ActLog
from urteil.harness.cluster.cluster_state import ClusterState

DEADLINE_S = 30.0
REQUEST_TIMEOUT_MS = 5_000
POLL_S = 0.1
REPEAT_S = 5.0


class AdminRequests:
    """Sends requests to `bootstrap`. The base of acts, which are logged in `acts`, and which read
    the current state from the cluster's metadata."""

    def __init__(
        self, bootstrap: Callable[[], Sequence[str]], state: ClusterState, acts: ActLog
    ) -> None:
        self._bootstrap = bootstrap
        self._state = state
        self._acts = acts

    def replicas(self, topic: str) -> dict[int, tuple[str, ...]]:
        return {view.partition: view.replicas for view in self._state.partitions(topic)}

    def _has_leaders(self, topic: str) -> bool:
        views = self._state.partitions(topic)
        return bool(views) and all(view.leader is not None for view in views)

    def _lacks(self, capability: Capability) -> bool:
        return capability.name in self._state.lacks

    def _send_until(self, send: Callable[[Any], object], is_done: Callable[[], bool]) -> None:
        """Repeat the request until `is_done`: a response may be lost, a controller may be new."""
        failure, due = "", 0.0

        def check_and_send() -> bool:
            nonlocal failure, due
            if is_done():
                return True
            if time.monotonic() > due:
                due = time.monotonic() + REPEAT_S
                failure = self._send_once(send, is_done)
            return False

        if not until(check_and_send, deadline_s=DEADLINE_S, poll_s=POLL_S):
            raise ActFailed(f"not done after {DEADLINE_S:g} s; {failure or ActFailed.UNHEEDED}")

    def _send_once(self, send: Callable[[Any], object], is_done: Callable[[], bool]) -> str:
        """Send the request and return the cluster's error. Raises ActFailed for a permanent
        one."""
        try:
            with self._client() as admin:
                send(admin)
        except KafkaError as error:
            failure = f"{type(error).__name__}: {error}"
            if not is_transient(error) and not is_done():
                raise ActFailed(failure) from error
            return failure
        return ""

    def _request(self, send: Callable[[Any], Any]) -> Any:
        """The response to a request. It is repeated only after a lost response, if that is
        harmless."""

        def send_once() -> Any:
            with self._client() as admin:
                return send(admin)

        try:
            return retry(send_once, KafkaError, is_transient, deadline_s=DEADLINE_S, poll_s=POLL_S)
        except KafkaError as error:
            raise ActFailed(f"{type(error).__name__}: {error}") from error

    @contextmanager
    def _client(self, wait_s: float = REQUEST_TIMEOUT_MS / 1000) -> Iterator[Any]:
        admin = KafkaAdminClient(
            bootstrap_servers=list(self._bootstrap()), request_timeout_ms=int(wait_s * 1000)
        )
        try:
            yield admin
        finally:
            admin.close()


def is_transient(error: KafkaError) -> bool:
    """Whether the error is transient: a broker may be away for a moment."""
    return error.retriable or isinstance(error, UnknownBrokerIdError)
