"""Events are seen once, also after a silence of the cluster, and faults begin at them."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.chaos.paper import PaperCluster
from tests.chaos.test_nemesis import nemesis, rows, schedule
from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.anchor_events import EVENTS, EventWatch, check_event
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.observations import LabFailure, NodeStatus, PartitionView
from urteil.harness.scenario import FaultSpec

AIM = FaultArguments(target="leader", topic="t")


class Moving(PaperCluster):
    """A cluster with a changing leader, ISR and controller; `asked` counts reads of its state."""

    def __init__(self) -> None:
        super().__init__()
        self.head: str | None = "b1"
        self.asked = threading.Semaphore(0)
        self.silent = False

    def controller(self) -> str | None:
        self._seen()
        return self.head

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        self._seen()
        return super().partition(topic, partition)

    def _seen(self) -> None:
        self.asked.release()
        if self.silent:
            raise LabFailure("ZooKeeper does not answer")

    def lead(self, leader: str | None, isr: tuple[str, ...] = ("b2", "b3")) -> None:
        assert self.view is not None
        self.view = replace(self.view, leader=leader, isr=isr)

    def await_asked(self, times: int = 2) -> None:
        """Wait until the second read of the state has begun, so that the first was processed."""
        for _ in range(times):
            assert self.asked.acquire(timeout=60)


def test_next_election_is_another_leader_or_one_after_none() -> None:
    cluster = Moving()
    watch = EventWatch("election", cluster, AIM)
    cluster.await_asked()
    cluster.lead(None)
    cluster.await_asked(3)
    assert not watch.occurred.is_set()
    cluster.lead("b2")
    assert watch.occurred.wait(60)


def test_isr_changes_and_new_controllers_are_events() -> None:
    cluster = Moving()
    shrink = EventWatch("isr_shrink", cluster, AIM)
    cluster.await_asked()
    cluster.lead("b2", ("b2", "b3", "b1"))
    cluster.await_asked(3)
    assert not shrink.occurred.is_set()
    cluster.lead("b2", ("b2", "b1"))
    assert shrink.occurred.wait(60)
    grown = Moving()
    growth = EventWatch("isr_growth", grown, AIM)
    grown.await_asked()
    grown.lead("b2", ("b2",))
    grown.await_asked(3)
    assert not growth.occurred.is_set()
    grown.lead("b2", ("b2", "b1"))
    assert growth.occurred.wait(60)
    other = Moving()
    change = EventWatch("controller", other, AIM)
    other.await_asked()
    other.head = "b3"
    assert change.occurred.wait(60)


def test_decision_is_an_event_until_its_markers_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, request = Moving(), threading.Semaphore(0)

    def decided_transactions() -> list[str]:
        request.release()
        if cluster.silent:
            raise ActFailed("no broker answers")
        return cluster.admin.open_ends

    monkeypatch.setattr(cluster.admin, "decided_transactions", decided_transactions)
    cluster.silent = True
    watch = EventWatch("decision", cluster, AIM)
    for _ in range(2):
        assert request.acquire(timeout=60)
    cluster.silent = False
    for _ in range(3):
        assert request.acquire(timeout=60)
    assert not watch.occurred.is_set()
    cluster.admin.open_ends = ["group-t1"]
    assert watch.occurred.wait(60)


def test_change_during_a_silence_of_zookeeper_is_an_event() -> None:
    cluster = Moving()
    watch = EventWatch("election", cluster, AIM)
    cluster.await_asked()
    cluster.silent = True
    cluster.lead("b3")
    cluster.await_asked(3)
    assert not watch.occurred.is_set()
    cluster.silent = False
    assert watch.occurred.wait(60)


def test_fault_begins_at_the_next_election(tmp_path: Path) -> None:
    cluster = Moving()
    faults = schedule(
        FaultSpec(fault="pause", target="b1", after_event="election", at_s=0, duration_s=0)
    )
    player = nemesis(cluster, tmp_path, faults)
    playing = threading.Thread(target=player.play, kwargs={"duration_s": 0.0})
    playing.start()
    cluster.await_asked()
    assert not player.injections
    cluster.lead("b3")
    playing.join(10)
    assert not playing.is_alive()
    assert rows(tmp_path)[0]["acted"]


def test_fault_begins_after_within_s_without_event(tmp_path: Path) -> None:
    faults = schedule(
        FaultSpec(fault="pause", target="b1", after_event="controller", at_s=0, within_s=0.2,
                  duration_s=0)
    )  # fmt: skip
    nemesis(Moving(), tmp_path, faults).play(duration_s=0.0)
    assert rows(tmp_path)[0]["acted"]


def test_fault_without_its_event_did_not_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("urteil.chaos.nemesis.PATIENCE_S", 0.1)
    faults = schedule(FaultSpec(fault="pause", target="b1", after_event="election", at_s=0))
    nemesis(Moving(), tmp_path, faults).play(duration_s=0.0)
    (row,) = rows(tmp_path)
    assert not row["acted"]
    assert row["proof"] == "never began: no election occurred"


def test_at_once_limits_active_faults(tmp_path: Path) -> None:
    wishes = [
        FaultSpec(fault="pause", target=f"b{n}", at_s=0, duration_s=0.1, choice=f"{n}")
        for n in (1, 2, 3)
    ]
    player = nemesis(Moving(), tmp_path, schedule(*wishes))
    player.at_once = 1
    player.play(duration_s=0.0)
    results = [(int(str(r["begin_ns"])), int(str(r["healed_ns"]))) for r in rows(tmp_path)]
    assert len(results) == 3
    assert all(after[0] >= before[1] for before, after in pairwise(results))


def test_every_event_has_a_detector() -> None:
    assert all(EVENTS.values())


def test_link_event_holds_its_frame_until_the_watch_closes() -> None:
    cluster = PaperCluster()
    watch = EventWatch("link:EndTxn:answer:2", cluster, AIM)
    assert watch.occurred.wait(60)
    ((rule, links),) = cluster.net.rules.values()
    assert (rule.api, rule.direction, rule.act, rule.occurrence) == ("EndTxn", "answer", "hold", 2)
    assert {link.dst for link in links} == set(cluster.brokers)
    watch.close()
    assert not cluster.net.rules


@pytest.mark.parametrize(
    ("event", "named"),
    [
        ("link:EndTxn:2", "link:API:request:N"),
        ("link:EndTxn:answer:0", "counts from 1"),
        ("link:EndTnx:answer:1", "EndTxn?"),
        ("electoin", "did you mean election?"),
    ],
)
def test_unknown_event_is_rejected_with_its_mend(event: str, named: str) -> None:
    with pytest.raises(ValueError, match=re.escape(named)):
        check_event(event)


def test_crash_at_a_link_event_hits_its_node(tmp_path: Path) -> None:
    cluster = PaperCluster()
    at_answer = FaultSpec(
        fault="crash", target="receiver", at_s=0, after_event="link:Fetch:answer:1", duration_s=0.1
    )
    player = nemesis(cluster, tmp_path, schedule(at_answer))
    player.play(duration_s=0.0)
    (row,) = rows(tmp_path)
    first = cluster.net.links()[0]
    assert row["acted"]
    assert row["targets"] == f'["{first.dst}"]'


class Looking(PaperCluster):
    """Notes which APIs the rules in force match when a node is killed or resumed."""

    def __init__(self) -> None:
        super().__init__()
        self.apis: list[list[str]] = []

    def kill(self, node: str) -> NodeStatus:
        self._look()
        return super().kill(node)

    def resume(self, node: str) -> NodeStatus:
        self._look()
        return super().resume(node)

    def _look(self) -> None:
        self.apis.append([rule.api for rule, _ in self.net.rules.values()])


def test_fault_that_may_not_begin_yet_holds_no_frame(tmp_path: Path) -> None:
    """A broker that restarted slowly once used up the time in which the next fault awaits its
    request."""
    cluster = Looking()
    faults = schedule(
        FaultSpec(fault="pause", target="b1", at_s=0, duration_s=0.5, choice="1"),
        FaultSpec(fault="crash", target="receiver", at_s=0.1, after_event="link:Fetch:answer:1",
                  within_s=0.3, duration_s=0.1, choice="2"),
    )  # fmt: skip
    player = nemesis(cluster, tmp_path, faults)
    player.at_once = 1
    player.play(duration_s=0.0)
    assert cluster.apis[0] == []
    assert [row["acted"] for row in rows(tmp_path)] == [True, True]


def test_patience_for_a_frame_begins_when_its_fault_may_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers of Apache Kafka that returned slowly used up the patience of the last kills."""
    monkeypatch.setattr("urteil.chaos.nemesis.PATIENCE_S", 0.1)
    faults = schedule(
        FaultSpec(fault="pause", target="b1", at_s=0, duration_s=0.5, choice="1"),
        FaultSpec(fault="crash", target="receiver", at_s=0.1, after_event="link:Fetch:answer:1",
                  duration_s=0.1, choice="2"),
    )  # fmt: skip
    player = nemesis(PaperCluster(), tmp_path, faults)
    player.at_once = 1
    player.play(duration_s=0.0)
    assert [row["acted"] for row in rows(tmp_path)] == [True, True]


def test_overdue_faults_await_their_frames_one_after_another(tmp_path: Path) -> None:
    cluster = Looking()
    faults = schedule(
        *(
            FaultSpec(fault="crash", target="receiver", at_s=0, within_s=5, duration_s=0.1,
                      after_event=f"link:{api}:answer:1", choice=api)
            for api in ("Fetch", "Produce")
        )
    )  # fmt: skip
    player = nemesis(cluster, tmp_path, faults)
    player.at_once = 1
    player.play(duration_s=0.0)
    assert cluster.apis == [["Fetch"], ["Produce"]]


def test_end_of_a_link_without_its_event_is_rejected() -> None:
    with pytest.raises(ValueError, match="crash: sender needs an event, after_event=link:API"):
        schedule(FaultSpec(fault="crash", target="sender", at_s=1))
