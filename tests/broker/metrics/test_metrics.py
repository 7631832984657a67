"""The text of metrics, their HTTP server, their counters and their setting."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.broker.metrics.exposition import parse
from tests.broker.net.raw import run, talk
from tests.ports import free_port
from urteil.broker.base import remote_time
from urteil.broker.config.broker_config import load_config
from urteil.broker.config.values import ConfigError
from urteil.broker.metrics import scrape_server
from urteil.broker.metrics.request_counts import FOLLOWER_FETCH, RequestCounts, kind_of
from urteil.broker.metrics.request_metrics import request_families
from urteil.broker.metrics.scrape_server import MAX_OPEN, ScrapeServer
from urteil.broker.metrics.text_format import BLOCK_LINES, Family, Sample, quantiles_ms
from urteil.broker.replication.traffic import Traffic
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import FetchRequest

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: b1\r\n\r\n"


def test_text_conforms_to_prometheus() -> None:
    odd = 'a"b\\c\nd'
    family = Family("m_total", "counter", "Odd", [((("topic", odd), ("partition", "0")), 3)])
    text = "".join(family.blocks())
    assert text.splitlines()[:2] == ["# HELP m_total Odd", "# TYPE m_total counter"]
    assert parse(text) == {"m_total": {(("topic", odd), ("partition", "0")): 3.0}}


def test_large_family_is_split_into_pieces() -> None:
    samples: list[Sample] = [((("n", str(n)),), n) for n in range(2 * BLOCK_LINES)]
    blocks = list(Family("m", "gauge", "Many", samples).blocks())
    assert len(blocks) == 3
    assert len(parse("".join(blocks))["m"]) == 2 * BLOCK_LINES


def test_quantiles_are_kafkas_six_by_nearest_rank() -> None:
    values = {
        labels[0][1]: value for labels, value in quantiles_ms(n / 1000 for n in range(1, 101))
    }
    assert values == {
        "0.50": 50.0, "0.75": 75.0, "0.95": 95.0, "0.98": 98.0, "0.99": 99.0, "0.999": 100.0,
    }  # fmt: skip
    assert {value for _, value in quantiles_ms([])} == {0.0}


def test_requests_are_counted_by_version_and_timed_by_api() -> None:
    counts = RequestCounts()
    produce = kind_of(ApiKey.PRODUCE, 9, None)
    for _ in range(3):
        counts.count_request(produce, 1.0, 1.002, 0.005, 1.010)
    counts.count_request(kind_of(ApiKey.PRODUCE, 3, None), 1.0, 1.0, 0.0, 1.0)
    families = parse(
        "".join(
            block
            for request_family in request_families(counts, 10.0)
            for block in request_family.blocks()
        )
    )
    prefix = "kafka_network_requestmetrics"
    assert families[f"{prefix}_requests_total"] == {
        (("request", "Produce"), ("version", "3")): 1.0,
        (("request", "Produce"), ("version", "9")): 3.0,
    }
    median = (("request", "Produce"), ("quantile", "0.50"))
    times = {"requestqueue": 2.0, "local": 3.0, "remote": 5.0, "total": 10.0}
    for name, expected in times.items():
        assert families[f"{prefix}_{name}timems"][median] == expected
        assert families[f"{prefix}_{name}timems_count"] == {(("request", "Produce"),): 4.0}
    handlers = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle"
    assert families[f"{handlers}_percent"][()] == pytest.approx((10 - 3 * 0.003) / 10)
    assert families[f"{handlers}percent_count"][()] == pytest.approx(9.991e9)


def test_fetches_of_followers_count_separately() -> None:
    counts = RequestCounts()
    follower = FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=2))
    for version, request in ((17, follower), (12, FetchRequest(replica_id=-1))):
        counts.count_request(kind_of(ApiKey.FETCH, version, request), 0.0, 0.0, 0.0, 0.0)
    assert set(counts.by_api()) == {ApiKey.FETCH, FOLLOWER_FETCH}
    families = parse(
        "".join(
            block
            for request_family in request_families(counts, 1.0)
            for block in request_family.blocks()
        )
    )
    totals = families["kafka_network_requestmetrics_totaltimems_count"]
    assert {labels[0][1]: value for labels, value in totals.items()} == {
        "Fetch": 2.0, "FetchConsumer": 1.0, "FetchFollower": 1.0,
    }  # fmt: skip


def test_dropped_topic_stays_in_the_sums() -> None:
    traffic = Traffic()
    traffic.count_append("a", 100, 2)
    traffic.count_append("b", 10, 1)
    traffic.forget("a")
    traffic.forget("never seen")
    assert set(traffic.topics) == {"b"}
    assert (traffic.sums().bytes_in, traffic.sums().messages_in) == (110, 3)


def test_remote_time_excludes_tasks_that_a_request_started() -> None:
    async def scenario() -> None:
        waits = remote_time.Waits()
        remote_time.begin(waits)
        left = asyncio.create_task(remote_time.await_remote(asyncio.sleep(0.05)))  # type: ignore[func-returns-value]
        await asyncio.sleep(0.1)
        await left
        assert waits.s == 0.0
        await remote_time.await_remote(asyncio.sleep(0.03))  # type: ignore[func-returns-value]
        assert 0.02 <= waits.s <= 5

    run(scenario())


# The server.


@contextlib.asynccontextmanager
async def scraped(text: str = "# HELP up It is\n# TYPE up gauge\nup 1\n") -> AsyncIterator[int]:
    server, port = ScrapeServer(lambda: [text]), free_port()
    await server.listen("127.0.0.1", port)
    try:
        yield port
    finally:
        server.close()


def test_scrape_response_has_its_length() -> None:
    async def scenario() -> None:
        async with scraped() as port:
            head, _, body = (await talk(port, SCRAPE)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"Content-Type: text/plain; version=0.0.4" in head
            assert f"Content-Length: {len(body)}".encode() in head
            assert parse(body.decode()) == {"up": {(): 1.0}}
            query = SCRAPE.replace(b"/metrics", b"/metrics?name[]=up")
            assert (await talk(port, query)).startswith(b"HTTP/1.1 200 ")

    run(scenario())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404 Not Found"),
        (b"GET /metrics/ HTTP/1.1\r\n\r\n", b"404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"404 Not Found"),
        (b"GET /metrics\r\n\r\n", b"400 Bad Request"),
        (b"GET /metrics HTTP/1.1\r\nHost: cut", b"400 Bad Request"),
        (b"GET /metrics SMTP\r\n\r\n", b"400 Bad Request"),
        (b"\x16\x03\x01\x02\x00\x01" * 50 + b"\r\n\r\n", b"400 Bad Request"),
        (b"\r\n\r\n", b"400 Bad Request"),
        (b"", b"400 Bad Request"),
    ],
)
def test_other_requests_are_rejected(sent: bytes, status: bytes) -> None:
    async def scenario() -> None:
        async with scraped() as port:
            assert (await talk(port, sent)).startswith(b"HTTP/1.1 " + status + b"\r\n")
            assert b"up 1" in await talk(port, SCRAPE)

    run(scenario())


def test_endless_request_is_cut_at_the_limit() -> None:
    async def scenario() -> None:
        async with scraped() as port:
            answer = await talk(port, b"GET /metrics HTTP/1.1\r\nX: " + b"x" * (1 << 20))
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
            assert b"up 1" in await talk(port, SCRAPE)

    run(scenario())


def test_silent_and_unreading_peers_are_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scrape_server, "DEADLINE_S", 0.5)

    async def scenario() -> None:
        async with scraped("x" * (64 << 20)) as port:
            deaf, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(SCRAPE)
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_OPEN)]
            for reader, _ in silent:
                assert await asyncio.wait_for(reader.read(), 60) == b""
            with contextlib.suppress(ConnectionError):
                assert len(await asyncio.wait_for(deaf.read(), 60)) < 64 << 20
            monkeypatch.setattr(scrape_server, "DEADLINE_S", 60.0)
            assert len(await talk(port, SCRAPE)) > 64 << 20  # there is room again
            for each in (writer, *(connection for _, connection in silent)):
                each.close()

    run(scenario())


# The setting.


@pytest.mark.parametrize(
    "value", ["9404", ":9404", "host:", "host:0", "host:70000", "a b:1", "h:x"]
)
def test_malformed_listener_is_rejected(value: str) -> None:
    with pytest.raises(ConfigError, match=r"urteil\.metrics\.listener: not HOST:PORT"):
        load(value)


def test_listener_is_host_and_port() -> None:
    assert load("0.0.0.0:9404") == ("0.0.0.0", 9404)
    assert load("[::1]:9404") == ("::1", 9404)
    assert load("") is None


def load(value: str) -> tuple[str, int] | None:
    minimal = {"broker.id": "1", "zookeeper.connect": "zk1:2181"}
    return load_config({**minimal, "urteil.metrics.listener": value}).metrics_listener


def test_port_in_use_is_reported_with_the_setting() -> None:
    async def scenario() -> None:
        async with scraped() as port:
            with pytest.raises(OSError, match=rf"urteil\.metrics\.listener 127\.0\.0\.1:{port}: "):
                await ScrapeServer(lambda: []).listen("127.0.0.1", port)

    run(scenario())
