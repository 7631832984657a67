"""The subject of a finding that can be drawn: a record or a cycle of transactions."""

from __future__ import annotations

from urteil.harness.verify.result import Finding


def cycle_of(finding: Finding) -> list[str]:
    """The transactions of a finding's cycle, the first one repeated at the end; or none."""
    cycle = next((str(record["txns"]) for record in finding.records if record.get("txns")), "")
    way = cycle.split(" -> ")
    return way if len(way) > 2 and way[0] == way[-1] else []


def edges_of(finding: Finding) -> list[str]:
    """Kind and place of each edge of a finding's cycle, if its record names them all."""
    named = next((str(record["edges"]) for record in finding.records if record.get("edges")), "")
    edges = named.split(", ")
    return edges if len(edges) == len(cycle_of(finding)) - 1 else []


def cycle_text(finding: Finding) -> str:
    """What distinguishes a finding's cycle from others; empty without one."""
    return ", ".join([" -> ".join(cycle_of(finding)), *edges_of(finding)])


def record_of(finding: Finding) -> str | None:
    """The value id of the finding's record, if it has one."""
    named = (record.get("value_id") for record in finding.records)
    return next((str(number) for number in named if number), None)
