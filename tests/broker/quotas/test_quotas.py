"""Rates, token buckets and the precedence of limits, on a manual clock."""

from __future__ import annotations

import pytest

from urteil.broker.base.rates import Rate, TokenBucket, Windows
from urteil.broker.config.incremental_changes import RejectedChange
from urteil.broker.controller.mutation_quota import Mutations
from urteil.broker.quotas.alterations import Component, check_filter
from urteil.broker.quotas.quota_table import Entity, Limit, Quota, QuotaTable, entity
from urteil.broker.quotas.stored_quotas import entity_at, place
from urteil.broker.quotas.throttle import MAX_COUNTED, Throttle


class Clock:
    now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms


def throttle(table: QuotaTable, clock: Clock) -> Throttle:
    return Throttle(table, Windows(), Windows(), clock)


def test_rate_covers_at_least_ten_seconds() -> None:
    rate = Rate(Windows())
    rate.record(5000, 0)
    assert rate.measure(0) == (500, 10_000)
    assert rate.throttle_ms(1000, 0) == 0
    rate.record(10_000, 500)
    assert rate.throttle_ms(1000, 500) == round((15_000 / 10.5 - 1000) / 1000 * 10_500)
    assert rate.measure(11_600)[0] == 0  # both have left the windows


def test_rate_falls_to_its_limit_within_the_wait() -> None:
    rate = Rate(Windows())
    rate.record(30_000, 0)
    wait_ms = rate.throttle_ms(2900, 0)
    assert wait_ms > 0
    assert rate.throttle_ms(2900, wait_ms) == 0


def test_token_bucket_saves_tokens_and_allows_debt() -> None:
    bucket = TokenBucket(Windows(), 2.0, 0)
    bucket.take(30, 2.0, 0)  # 22 were saved
    assert bucket.throttle_ms(2.0, 0) == 4000
    assert bucket.throttle_ms(2.0, 3000) == 1000
    assert bucket.throttle_ms(2.0, 4000) == 0


ORDER = [
    entity(user="ann", client_id="app"),
    entity(user="ann", client_id=None),
    entity(user="ann"),
    entity(user=None, client_id="app"),
    entity(user=None, client_id=None),
    entity(user=None),
    entity(client_id="app"),
    entity(client_id=None),
]


def test_most_specific_limit_applies() -> None:
    table = QuotaTable()
    for value, limited in enumerate(reversed(ORDER)):
        table.put(limited, {Quota.PRODUCE: float(value)})
        limit = table.of_client(Quota.PRODUCE, "ann", "app")
        assert limit is not None
        assert limit.value == value
    assert table.of_client(Quota.FETCH, "ann", "app") is None
    for limited in ORDER[:2]:
        table.put(limited, {})
    assert table.of_client(Quota.PRODUCE, "ann", "app") == Limit(5.0, "ann", None)
    assert table.of_client(Quota.PRODUCE, "bob", "app") == Limit(4.0, "bob", "app")
    assert table.is_limited(Quota.PRODUCE)
    assert not table.is_limited(Quota.FETCH)


def test_clients_that_share_a_limit_share_the_count() -> None:
    table, clock = QuotaTable(), Clock()
    table.put(entity(user="ann"), {Quota.PRODUCE: 1000.0})
    ours = throttle(table, clock)
    assert ours.spend(Quota.PRODUCE, "ann", "one", 9000) == 0
    assert ours.spend(Quota.PRODUCE, "ann", "other", 3000) == 2000
    assert ours.spend(Quota.PRODUCE, "bob", "one", 1e9) == 0
    ours.take_back(Quota.PRODUCE, "ann", "other", 3000)
    assert ours.spend(Quota.PRODUCE, "ann", "one", 1000) == 0
    assert ours.throttled[Quota.PRODUCE] == 1


def test_recent_waits_are_averaged() -> None:
    table, clock = QuotaTable(), Clock()
    table.put(entity(user="ann"), {Quota.PRODUCE: 1000.0})
    table.put(entity(client_id=None), {Quota.FETCH: 1000.0})
    ours = throttle(table, clock)
    assert list(ours.waits_ms()) == []
    waits = [ours.spend(Quota.PRODUCE, "ann", "app", 6000) for _ in range(3)]
    assert waits == [0, 2000, 8000]
    assert ours.spend(Quota.FETCH, "bob", "app", 11_000) == 1000
    assert list(ours.waits_ms()) == [
        (Quota.PRODUCE, "ann", "", 5000.0),
        (Quota.FETCH, "", "app", 1000.0),
    ]
    clock.now_ms = 60_000
    assert {ms for *_, ms in ours.waits_ms()} == {0.0}


def test_request_quota_waits_one_window_at_most() -> None:
    table, clock = QuotaTable(), Clock()
    table.put(entity(client_id=None), {Quota.REQUEST: 1.0})
    assert throttle(table, clock).spend(Quota.REQUEST, "ann", "app", 5000) == 1000


def test_every_request_takes_some_time() -> None:
    """The clock has whole ms, so a short request seems to take no time."""
    table = QuotaTable()
    table.put(entity(user="ann"), {Quota.REQUEST: 0.0})
    assert throttle(table, Clock()).spend(Quota.REQUEST, "ann", "c", 0.0) == 1000


@pytest.mark.parametrize(("quota", "wait_ms"), [(Quota.PRODUCE, 0), (Quota.REQUEST, 1000)])
def test_limit_of_zero_behaves_as_in_apache_kafka(quota: Quota, wait_ms: int) -> None:
    """Apache Kafka divides by the limit, and the result overflows."""
    table = QuotaTable()
    table.put(entity(client_id=None), {quota: 0.0})
    assert throttle(table, Clock()).spend(quota, "ann", "app", 5000) == wait_ms


def test_throttle_time_beyond_int_becomes_zero() -> None:
    table = QuotaTable()
    table.put(entity(client_id=None), {Quota.PRODUCE: 1.0})
    ours = throttle(table, Clock())
    waits = [ours.spend(Quota.PRODUCE, "ann", "app", 1e6) for _ in range(3)]
    assert waits == [999_990_000, 1_999_990_000, 0]


@pytest.mark.parametrize("is_strict", [True, False])
def test_mutation_limit_of_zero_allows_one_debt(is_strict: bool) -> None:
    table = QuotaTable()
    table.put(entity(user=None), {Quota.MUTATION: 0.0})
    ours = throttle(table, Clock())
    asking = [Mutations(ours, "ann", "app", is_strict=is_strict) for _ in range(2)]
    assert [quota.take(1) for quota in asking] == [True, not is_strict]
    assert [quota.wait_ms for quota in asking] == [0, 0]


def test_address_with_limit_zero_waits_one_window() -> None:
    table = QuotaTable()
    table.put(entity(ip=None), {Quota.CONNECTION: 0.0})
    assert throttle(table, Clock()).connect("h") == 1000


@pytest.mark.parametrize("is_strict", [True, False])
def test_mutations_during_a_debt(is_strict: bool) -> None:
    table, clock = QuotaTable(), Clock()
    table.put(entity(user=None), {Quota.MUTATION: 1.0})
    ours = throttle(table, clock)
    first = Mutations(ours, "ann", "app", is_strict=is_strict)
    assert first.take(14)
    second = Mutations(ours, "ann", "app", is_strict=is_strict)
    assert second.take(2) is not is_strict
    assert second.wait_ms == (3000 if is_strict else 5000)
    clock.now_ms = 3000
    assert Mutations(ours, "ann", "app", is_strict=True).take(1) is is_strict


def test_connection_rate_of_an_address() -> None:
    table, clock = QuotaTable(), Clock()
    table.put(entity(ip=None), {Quota.CONNECTION: 1.0})
    ours = throttle(table, clock)
    assert [ours.connect("h") for _ in range(11)] == [0] * 10 + [1000]
    assert ours.connect("other") == 0


def test_many_clients_do_not_evict_a_count_in_use() -> None:
    table = QuotaTable()
    table.put(entity(client_id=None), {Quota.PRODUCE: 1000.0})
    ours = throttle(table, Clock())
    assert ours.spend(Quota.PRODUCE, "ann", "greedy", 50_000)
    for other in range(MAX_COUNTED + 100):
        ours.spend(Quota.PRODUCE, "ann", f"app-{other}", 1)
        if other % 1000 == 0:
            assert ours.spend(Quota.PRODUCE, "ann", "greedy", 0)
    assert ours.spend(Quota.PRODUCE, "ann", "greedy", 0)


@pytest.mark.parametrize(
    "node_entity", [*ORDER, entity(user="a b*/~ü"), entity(ip=None), entity(ip="::1")]
)
def test_node_paths_of_entities(node_entity: Entity) -> None:
    assert entity_at(*place(node_entity)) == node_entity


def test_names_are_percent_encoded() -> None:
    assert place(entity(user="a b*/~", client_id=None)) == (
        "users",
        "a%20b%2A%2F%7E/clients/<default>",
    )
    with pytest.raises(ValueError, match="nobody"):
        entity_at("users", "a/b/c/d")


@pytest.mark.parametrize("types", [["user", "user"], ["ip", "user"], [""], ["team"]])
def test_invalid_filters_are_rejected(types: list[str]) -> None:
    with pytest.raises(RejectedChange):
        check_filter([Component(type, 2, None) for type in types])
