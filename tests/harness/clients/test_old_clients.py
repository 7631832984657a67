"""Clients with the protocol of 0.10.1: by the option, without headers."""

from __future__ import annotations

import pytest

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.producers.produced_records import Records
from urteil.harness.clients.spec import OLD, consumer_config, producer_config


@pytest.mark.parametrize(
    ("client", "kind", "old", "is_old"),
    [
        ("c2", "consumer", "1", True),
        ("c2.3", "consumer", "1", True),  # its third session
        ("c1", "consumer", "1", False),
        ("c2", "consumer", "0", False),
        ("final-2", "final", "1", False),
    ],
)
def test_every_second_reader_is_old(client: str, kind: str, old: str, is_old: bool) -> None:
    assert consumer_config(spec_of(client, kind, old_clients=old)).get("api_version") == (
        OLD if is_old else None
    )


@pytest.mark.parametrize(("client", "is_old"), [("p1", False), ("p2", True)])
def test_every_second_producer_is_old(client: str, is_old: bool) -> None:
    spec = spec_of(client, "producer", old_clients="1")
    config = producer_config(spec)
    assert config.get("api_version") == (OLD if is_old else None)
    assert (config["enable_idempotence"], spec.idempotent) == (not is_old, not is_old)


@pytest.mark.parametrize(("old", "some"), [("1", False), ("0", True)])
def test_old_clients_send_no_headers(old: str, some: bool) -> None:
    records = Records(spec_of("p1", "producer", old_clients=old))
    assert any(records.record(op).headers for op in range(3)) is some
