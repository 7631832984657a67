"""Metrics of requests under the names of Apache Kafka's `RequestMetrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from urteil.broker.metrics.request_counts import FOLLOWER_FETCH, ApiRequests, RequestCounts, Times
from urteil.broker.metrics.text_format import (
    Family,
    Sample,
    build_family,
    build_single,
    quantiles_ms,
)
from urteil.broker.wire.api_keys import ApiKey

PREFIX = "kafka_network_requestmetrics"
HANDLERS = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle"

Shown = Sequence[tuple[str, int, ApiRequests]]
"""Name, version and requests, in the order of names."""

_TIMES: tuple[tuple[str, Callable[[Times], float]], ...] = (
    ("requestqueuetimems", lambda times: times[0]),
    ("localtimems", lambda times: times[1] - times[2]),
    ("remotetimems", lambda times: times[2]),
    ("totaltimems", lambda times: times[0] + times[1]),
)


def request_families(counts: RequestCounts, up_s: float) -> Iterator[Family]:
    """Yield counts by API and version, times by API, and the idle share of `up_s`."""
    shown = sorted(_shown_counts(counts), key=lambda count: count[:2])
    versions: dict[tuple[str, int], int] = {}
    for name, version, asked in shown:
        versions[name, version] = versions.get((name, version), 0) + asked.count
    samples: list[Sample] = [
        ((("request", name), ("version", str(version))), count)
        for (name, version), count in versions.items()
    ]
    yield build_family(f"{PREFIX}_requests_total", samples)
    for metric, time in _TIMES:
        yield from _times(f"{PREFIX}_{metric}", time, shown)
    yield from _handlers(max(0.0, up_s - counts.busy_s), up_s)


def _times(metric: str, time: Callable[[Times], float], shown: Shown) -> Iterator[Family]:
    by_name: dict[str, list[ApiRequests]] = {}
    for name, _, asked in shown:
        by_name.setdefault(name, []).append(asked)
    totals: list[Sample] = [
        ((("request", name),), sum(counts.count for counts in every))
        for name, every in by_name.items()
    ]
    yield build_family(f"{metric}_count", totals)
    samples = (
        sample
        for name, every in by_name.items()
        for sample in quantiles_ms(
            (time(times) for counts in every for times in counts.recent), (("request", name),)
        )
    )
    yield build_family(metric, samples)


def _handlers(idle_s: float, up_s: float) -> Iterator[Family]:
    yield build_single(f"{HANDLERS}_percent", round(idle_s / up_s, 6) if up_s > 0 else 1.0)
    yield build_single(f"{HANDLERS}percent_count", int(idle_s * 1e9))


def _shown_counts(counts: RequestCounts) -> Iterator[tuple[str, int, ApiRequests]]:
    """Fetches count twice: as those of consumers or followers, and as fetches."""
    for api, versions in counts.by_api().items():
        for version, asked in versions.items():
            if api == FOLLOWER_FETCH:
                yield "FetchFollower", version, asked
            elif api == ApiKey.FETCH:
                yield "FetchConsumer", version, asked
            is_fetch = api in (FOLLOWER_FETCH, ApiKey.FETCH)
            yield "Fetch" if is_fetch else name_of(api), version, asked


def name_of(api: int) -> str:
    """Return the API's name in Kafka's spelling: `LeaderAndIsr`."""
    return "".join(word.capitalize() for word in ApiKey(api).name.split("_"))
