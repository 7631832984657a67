"""What a finding names, of which there may be a picture: a record, a cycle of transactions."""

from __future__ import annotations

from urteil.harness.verify.result import Finding


def cycle_of(finding: Finding) -> list[str]:
    """The transactions of a finding's cycle in their order, the first one last again; or none."""
    told = next((str(one["txns"]) for one in finding.records if one.get("txns")), "")
    way = told.split(" -> ")
    return way if len(way) > 2 and way[0] == way[-1] else []


def record_of(finding: Finding) -> str | None:
    """The record that a finding is about."""
    named = (record.get("value_id") for record in finding.records)
    return next((str(one) for one in named if one), None)
