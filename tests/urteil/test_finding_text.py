"""`urteil explain RUN GUARANTEE` shows findings, a cycle edge by edge."""

from __future__ import annotations

from urteil.cli.finding_text import finding_lines
from urteil.harness.verify.result import Finding, GuaranteeResult, Status


def test_cycle_is_shown_edge_by_edge() -> None:
    cycle = Finding(
        guarantee="g1c",
        sub_kind="g1c",
        sentence="b read what a wrote, p-0@1; a read what b wrote, p-0@2.",
        records=[{"txns": "a -> b -> a"}],
    )
    plain = Finding(guarantee="g1c", sub_kind="other", sentence="Odd.", permitted="a reason")
    judged = GuaranteeResult(name="g1c", status=Status.VIOLATED, promise="One way.", source="",
                             violations=1, permitted=1, findings=[cycle, plain])  # fmt: skip
    assert list(finding_lines(judged)) == [
        "g1c violated: 1 violation, 1 permitted",
        "  promise: One way.",
        "  g1c",
        "    a -> b -> a",
        "      b read what a wrote, p-0@1",
        "      a read what b wrote, p-0@2",
        "  other, permitted: a reason",
        "    Odd.",
    ]
