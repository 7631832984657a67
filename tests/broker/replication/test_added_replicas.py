"""A leader's handling of replicas that a reassignment adds (KIP-455)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.broker.replication.plain import Plain, state


def test_added_replicas_join_the_isr_without_making_it_too_small(tmp_path: Path) -> None:
    plain = Plain(tmp_path / "t-0", min_isr=2)
    begun = replace(state(1, 1, (1, 2)), adding_replicas=(3,), removing_replicas=(2,))
    plain.partition.become_leader(begun, 0.0)
    assert plain.partition.replication_factor == 2, "not under-replicated"
    assert plain.partition.is_reassigning
    assert plain.partition.effective_min_isr == 2
    plain.partition.record_follower_fetch(3, 0, 0, 1.0)
    assert plain.proposed == [(1, 2, 3)]
    done = replace(state(1, 2, (1, 3)), replicas=(1, 3))
    plain.partition.become_leader(done, 2.0)
    assert plain.partition.replication_factor == 2
    assert not plain.partition.is_reassigning
    assert set(plain.partition.followers) == {3}
