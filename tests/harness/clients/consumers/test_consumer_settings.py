"""Settings of readers by workload options: racks and sizes of fetches."""

from __future__ import annotations

import pytest

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.spec import consumer_config


@pytest.mark.parametrize(
    ("client", "kind", "racks", "rack"),
    [
        ("c2", "consumer", "1", "rack2"),
        ("c2.3", "consumer", "1", "rack2"),  # its third session
        ("c2", "consumer", "0", None),
        ("final-2", "final", "1", None),
    ],
)
def test_racks_of_readers(client: str, kind: str, racks: str, rack: str | None) -> None:
    spec = spec_of(client, kind, racks=racks)
    assert consumer_config(spec).get("client_rack") == rack


@pytest.mark.parametrize(("kind", "most"), [("consumer", 1024), ("group", 1024), ("final", None)])
def test_fetch_sizes_of_readers(kind: str, most: int | None) -> None:
    spec = spec_of("c1", kind, fetch_bytes="1024")
    assert consumer_config(spec).get("fetch_max_bytes") == most
