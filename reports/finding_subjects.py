"""The subject of a finding that can be drawn: a record or a cycle of transactions."""

from __future__ import annotations

from urteil.harness.verify.result import Finding


def cycle_of(finding: Finding) -> list[str]:
    """The transactions of a finding's cycle, the first one repeated at the end; or none."""
    cycle = next((str(record["txns"]) for record in finding.records if record.get("txns")), "")
    way = cycle.split(" -> ")
    return way if len(way) > 2 and way[0] == way[-1] else []


def record_of(finding: Finding) -> str | None:
    """The value id of the finding's record, if it has one."""
    named = (record.get("value_id") for record in finding.records)
    return next((str(number) for number in named if number), None)
