"""`urteil hosts check`: the programs and properties of each host of an inventory, and the reasons
for which it cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from urteil.chaos.parallel import run_on_all
from urteil.harness.runtimes.hosts.connection import HostConnection, HostFailure
from urteil.harness.runtimes.hosts.host_facts import HostFacts, describe_offset, find_facts
from urteil.harness.runtimes.hosts.inventory import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCheck:
    """`facts` is None for a host that cannot be reached. Without `problems` it can be used."""

    host: Host
    facts: HostFacts | None
    problems: list[str]


def check_hosts(hosts: Sequence[Host]) -> list[HostCheck]:
    """Check all hosts in parallel. Changes nothing there."""
    return run_on_all(_check, hosts)


def _check(host: Host) -> HostCheck:
    connection = HostConnection(host)
    try:
        connection.open()
        facts = find_facts(connection)
    except HostFailure as failure:
        return HostCheck(host=host, facts=None, problems=[str(failure)])
    finally:
        connection.close()
    return HostCheck(host=host, facts=facts, problems=facts.problems())


def describe_check(check: HostCheck) -> str:
    """The properties of the host in one line."""
    facts = check.facts
    if facts is None:
        return "cannot be used"
    java = (
        f"Java {facts.found.java_version}" if facts.has_java else "no Java (the lab sends its own)"
    )
    packets = "cannot filter packets" if facts.found.filter_problem else "filters packets"
    placed = f"rack {check.host.rack}, runs {', '.join(check.host.runs)}"
    return (
        f"Python {facts.python}, {java}, {facts.found.free_bytes / 1e9:.1f} GB free, "
        f"clock {describe_offset(facts.offset_ns, facts.bound_ns)}, "
        f"round trip {facts.round_trip_ns / 1e6:.1f} ms, {packets}; {placed}"
    )
