"""What keeps a host from use, one sentence for each."""

from __future__ import annotations

import platform
import sys

import msgspec
import pytest

from urteil.harness.runtimes.hosts.connection import HostFailure
from urteil.harness.runtimes.hosts.host_facts import (
    BOOT_ID,
    MOST_OFFSET_NS,
    Found,
    HostFacts,
    describe_offset,
    require_usable,
)
from urteil.harness.runtimes.hosts.inventory import Host

MAJOR, MINOR = sys.version_info[:2]
HOST = Host(name="alpha", address="198.18.0.1", user="urteil")
FOUND = Found(
    python=(MAJOR, MINOR, 0),
    machine=platform.machine(),
    boot_id=BOOT_ID.read_text().strip(),
    host_name="alpha",
    java="/usr/bin/java",
    java_version="17",
    free_bytes=1 << 40,
    filter_problem="",
    parts=(),
)


def facts(*, offset_ns: int = 0, bound_ns: int = 1_000_000, **found: object) -> HostFacts:
    return HostFacts(
        host=HOST,
        found=msgspec.structs.replace(FOUND, **found),
        offset_ns=offset_ns,
        bound_ns=bound_ns,
        round_trip_ns=2 * bound_ns,
    )


def test_usable_host_has_no_problem() -> None:
    require_usable([facts()])


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (facts(python=(3, 9, 2)), "has Python 3.9.2, and 3.11 or newer is required: install it"),
        (facts(python=(MAJOR, MINOR + 1, 0)), f"name a python{MAJOR}.{MINOR} there by `python`"),
        (facts(machine="riscv64"), "is riscv64, and the lab"),
        (facts(free_bytes=1 << 20), "has 1 MB free in /var/tmp/urteil, and 1024 MB are required"),
        (
            facts(offset_ns=3_000_000_000),
            "by +3000.0 ms (± 1.0 ms), and 100 ms are allowed",
        ),
        (facts(offset_ns=-200_000_000), "differs from the lab's by -200.0 ms (± 1.0 ms)"),
        (facts(bound_ns=MOST_OFFSET_NS + 1), "differs from the lab's by +0.0 ms (± 100.0 ms)"),
    ],
)
def test_problem_names_the_host_and_the_remedy(found: HostFacts, problem: str) -> None:
    with pytest.raises(HostFailure, match=r"the host alpha \(urteil@198\.18\.0\.1:22\)") as raised:
        require_usable([facts(), found])
    assert problem in str(raised.value)


def test_host_without_packet_filter_is_usable_and_has_a_remedy() -> None:
    without = facts(filter_problem="nft is missing")
    assert not without.problems()
    assert "(urteil@198.18.0.1:22) cannot filter packets: nft is missing; install nftables" in (
        without.packet_filter_problem
    )
    assert not facts().packet_filter_problem


def test_offset_within_its_bound_of_the_limit_is_rejected() -> None:
    assert not facts(offset_ns=MOST_OFFSET_NS - 2_000_000).problems()
    assert facts(offset_ns=MOST_OFFSET_NS - 500_000).problems()


@pytest.mark.parametrize(("version", "has_java"), [("", False), ("11", False), ("21", True)])
def test_old_java_counts_as_none(version: str, has_java: bool) -> None:
    assert facts(java_version=version).has_java is has_java
    assert not facts(java_version=version).problems()


def test_host_of_another_boot_has_a_clock_of_its_own() -> None:
    assert facts().shares_clock
    assert not facts(boot_id="another").shares_clock


def test_offset_is_described_with_its_bound() -> None:
    assert describe_offset(-1_250_000, 200_000) == "-1.2 ms (± 0.2 ms)"
