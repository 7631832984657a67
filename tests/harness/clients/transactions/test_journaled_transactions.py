"""Calls of librdkafka that may never come back."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from urteil.harness.clients.transactions import journaled_transactions


def test_a_call_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journaled_transactions, "GIVE_UP_S", 0.05)
    hanging = threading.Event()
    with pytest.raises(TimeoutError):
        journaled_transactions._in_time(hanging.wait)
    hanging.set()


def test_a_refusal_is_told_as_it_is() -> None:
    def refuse() -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED))

    with pytest.raises(KafkaException, match="_FENCED"):
        journaled_transactions._in_time(refuse)


def test_one_that_comes_back_is_nothing_to_tell() -> None:
    journaled_transactions._in_time(lambda: None)
