"""Calls of librdkafka have a deadline."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from urteil.harness.clients.transactions import journaled_transactions


def test_hanging_call_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journaled_transactions, "GIVE_UP_S", 0.05)
    hanging = threading.Event()
    with pytest.raises(TimeoutError):
        journaled_transactions._call_with_timeout(hanging.wait)
    hanging.set()


def test_error_of_a_call_is_raised() -> None:
    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED))

    with pytest.raises(KafkaException, match="_FENCED"):
        journaled_transactions._call_with_timeout(fail)


def test_successful_call_returns() -> None:
    journaled_transactions._call_with_timeout(lambda: None)
