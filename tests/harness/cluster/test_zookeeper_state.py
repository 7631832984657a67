"""The cluster's state while ZooKeeper is away."""

from __future__ import annotations

import socket

import pytest
from kazoo.retry import ForceRetryError, KazooRetry

from urteil.chaos.observations import LabFailure
from urteil.harness.cluster.zookeeper_state import PAUSES, ZooKeeperState


def test_absent_zookeeper_is_retried_at_even_intervals() -> None:
    """kazoo's jitter multiplies up: without backoff the pauses would shrink to nothing."""
    pauses: list[float] = []

    def connect() -> None:
        if len(pauses) < 300:
            raise ForceRetryError

    KazooRetry(max_tries=-1, sleep_func=pauses.append, **PAUSES)(connect)
    assert set(pauses) == {PAUSES["delay"]}


def test_absent_zookeeper_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as nobody:  # its port is taken, and refuses
        nobody.bind(("127.0.0.1", 0))
        state = ZooKeeperState("{}:{}".format(*nobody.getsockname()))
        with pytest.raises(LabFailure, match="no ZooKeeper session within 1 s"):
            state.start(deadline_s=1)
        state.close()
    assert capfd.readouterr().err == ""
