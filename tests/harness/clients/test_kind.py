"""Declarations of client kinds: names, groups and idempotence of clients, and what they start."""

from __future__ import annotations

import re

import msgspec
import pytest

from tests.harness.clients.specs import spec_of
from urteil.chaos.capabilities import CONSUMER_PROTOCOL
from urteil.chaos.client_selectors import KINDS as SELECTED_KINDS
from urteil.harness.clients.client_main import begin
from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.libraries import LIBRARIES
from urteil.harness.clients.workload_kinds import WORKLOAD_KINDS
from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.verify.guarantees import GUARANTEES

NEVER_STARTED = {"final"}


def _names(workload: WorkloadSpec, *, users: bool = False) -> list[str]:
    scenario = Scenario(name="test", workload=workload, cluster=ClusterSpec(users=users))
    return [name for kind in client_kinds().values() for name in kind.client_names(scenario)]


TWO_TOPICS = (TopicSpec(), TopicSpec(name="copies"))


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        (WorkloadSpec(), "c1 p1 p2 probe"),
        (WorkloadSpec(options={"probe": "0"}), "c1 p1 p2"),
        (WorkloadSpec(kind="compacted", consumers=2), "c1 c2 p1 p2 probe"),
        (WorkloadSpec(kind="bulk", producers=1), "c1 p1 probe"),
        (WorkloadSpec(kind="group", consumers=2), "g1 g2 o1 p1 p2 probe"),
        (WorkloadSpec(kind="mixed", options={"members": "1"}), "c1 g1 o1 p1 p2 probe"),
        (WorkloadSpec(kind="commits", consumers=2), "k1 k2 o1 p1 p2 probe"),
        (WorkloadSpec(kind="pipeline", options={"apps": "1"}), "c1 a1 p1 p2 probe"),
        (WorkloadSpec(kind="transactions"), "c1 t1 t2 probe"),
        (WorkloadSpec(kind="list-append"), "c1 l1 l2 probe"),
        (
            WorkloadSpec(kind="transactions", topics=TWO_TOPICS, options={"copiers": "2"}),
            "c1 o1 x1 x2 t1 t2 probe",
        ),
        (
            WorkloadSpec(options={"brief_ms": "1000", "deletions": "1", "passers_by": "2"}),
            "c1 active1 brief1 forgetter1 passer1 p1 p2 probe",
        ),
        (
            WorkloadSpec(
                options={"corrupt_batches": "1", "repeated_rounds": "1", "questions": "1"}
            ),
            "c1 examiner1 p1 p2 raw1 repeater1 probe",
        ),
        (
            WorkloadSpec(options={"rests": "1", "zombie_offsets": "1"}),
            "c1 late1 p1 p2 zombie1 probe",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_clients_that_a_workload_starts(workload: WorkloadSpec, names: str) -> None:
    assert _names(workload) == names.split()


def test_users_start_the_visitor() -> None:
    assert "visitor" in _names(WorkloadSpec(), users=True)


def test_each_workload_kind_starts_clients() -> None:
    for kind in WORKLOAD_KINDS:
        options = {"application": "pipeline"} if kind == "application" else {}
        assert len(_names(WorkloadSpec(kind=kind, topics=TWO_TOPICS, options=options))) > 2


@pytest.mark.parametrize(
    ("client", "kind", "acks", "idempotent"),
    [
        ("p1", "producer", -1, True),
        ("t1", "txn", -1, True),
        ("l1", "list_append", -1, True),
        ("x1", "copier", -1, True),
        ("raw1", "raw", -1, False),
        ("repeater1", "repeater", -1, True),
        ("late1", "late", -1, True),
        ("c1", "consumer", None, None),
        ("g1", "group", None, None),
        ("probe", "probe", None, None),
    ],
)
def test_first_entry_has_acks_and_idempotence_of_the_kind(
    client: str, kind: str, acks: int | None, idempotent: bool | None
) -> None:
    entry = begin(spec_of(client, kind), client_kinds()[kind])
    assert (entry.kind, entry.acks, entry.idempotent) == (kind, acks, idempotent)
    assert (entry.isolation is None) is (kind in ("producer", "raw", "repeater"))
    assert (entry.transactional_id is None) is (
        kind not in ("txn", "list_append", "copier", "late")
    )


@pytest.mark.parametrize(
    ("workload", "idempotent"),
    [
        (WorkloadSpec(), True),
        (WorkloadSpec(acks=1), False),  # as in the Java client
        (WorkloadSpec(idempotent=False), False),
    ],
)
def test_producer_is_idempotent_by_the_workload(workload: WorkloadSpec, idempotent: bool) -> None:
    spec = msgspec.structs.replace(spec_of("p1", "producer"), workload=workload)
    assert client_kinds()["producer"].complete(spec).idempotent is idempotent


@pytest.mark.parametrize(
    ("client", "kind", "group"),
    [
        ("g2", "group", "urteil-group"),
        ("o1", "offsets", "urteil-group"),
        ("x1", "copier", "urteil-group"),
        ("k1", "committer", "urteil-group"),
        ("k2", "committer", "urteil-group-second"),
        ("zombie1", "zombie", "urteil-group-zombie1"),
        ("t1", "txn", None),
        ("passer1", "passer", None),
    ],
)
def test_group_of_a_client(client: str, kind: str, group: str | None) -> None:
    assert spec_of(client, kind).group == group


def test_kind_is_played_by_a_library_that_can() -> None:
    kinds = client_kinds()
    loads = [WorkloadSpec(client=name) for name in LIBRARIES]
    assert [kinds["consumer"].library(load) for load in loads] == [
        "kafka-python", "confluent-kafka", "kafka-python", "kafka-python", "kafka-python"
    ]  # fmt: skip
    assert {kinds["copier"].library(load) for load in loads} == {"confluent-kafka"}


@pytest.mark.parametrize("client", LIBRARIES)
def test_members_of_the_consumer_protocol_use_librdkafka(client: str) -> None:
    load = WorkloadSpec(client=client, options={"group_protocol": "consumer"})
    kinds = client_kinds()
    assert {kinds[name].library(load) for name in ("group", "copier")} == {"confluent-kafka"}
    others = kinds["producer"]
    assert others.library(load) == others.library(WorkloadSpec(client=client))


def test_members_of_the_consumer_protocol_need_its_capability() -> None:
    load = WorkloadSpec(options={"group_protocol": "consumer"})
    needs = {name: kind.required_capabilities(load) for name, kind in client_kinds().items()}
    assert {name for name, need in needs.items() if CONSUMER_PROTOCOL in need} == {
        "group", "copier"
    }  # fmt: skip


def test_declarations_are_complete() -> None:
    kinds = client_kinds()
    for name, kind in kinds.items():
        assert (kind.name, bool(kind.about), (kind.work is None) ^ (kind.names is None)) == (
            name, True, True
        )  # fmt: skip
        assert set(kind.libraries) <= set(LIBRARIES)
        assert set(kind.judged_by) <= GUARANTEES.keys()
        assert kind.work is None or kind.module.startswith("urteil.harness.clients.")
        assert name in NEVER_STARTED or re.fullmatch("[a-z]+", kind.prefix)
    assert len({kind.prefix for kind in kinds.values()}) == len(kinds)


def test_faults_select_kinds_that_exist() -> None:
    assert set(SELECTED_KINDS.values()) <= client_kinds().keys()
