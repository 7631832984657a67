"""Rules of comparison: what two outputs may differ in, and what they may not."""

from __future__ import annotations

import pytest

from urteil.suites.courses.comparison import comparable_lines, difference


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (
            "Topic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 3,1\tElr: N/A",
            "Topic: a\tPartition: 0\tLeader: 3\tReplicas: 3,1,2\tIsr: 1,2\tElr: ",
        ),
        ("Topic: a\tTopicId: dZ6Q2jJrTNGcAHHCQmOsLw", "Topic: a\tTopicId: Nvg1CQ9bQVmxYkdTYVRrPw"),
        (
            '{"version":2,"brokerid":1,"timestamp":"1795799522882","kraftControllerEpoch":-1}',
            '{"version":2,"brokerid":3,"timestamp":"1795799529999","kraftControllerEpoch":-1}',
        ),
        ("CreateTime:1795799522882\tAlice", "CreateTime:1795799522999\tAlice"),
        (
            "app a 0 1 1 0 console-consumer-2b0f3f0a-5b0e-4c3e-9a51-0b6f2f3a1c11 /127.0.0.1 -",
            "app  a  0 1  1 0 console-consumer-9c0f3f0a-5b0e-4c3e-9a51-0b6f2f3a1c22 /127.2.0.1 -",
        ),
        ("shop  127.0.0.1:9092  (1)  Empty  0", "shop  127.227.201.3:22303  (2)  Empty  0"),
        ("127.0.0.1:9092 (id: 1 rack: a)", "127.227.201.3:22303 (id: 3 rack: a)"),
        ("Connecting to 127.0.0.1:9095", "Connecting to 127.227.101.101:22298"),
        (
            "Dumping /tmp/x/ours/nodes/b1/data/a-0/00000000000000000000.log",
            "Dumping /tmp/y/kafka/nodes/b1/data/a-0/00000000000000000000.log",
        ),
        ("baseOffset: 0 crc: 17 CreateTime: 1795799522882", "baseOffset: 0 crc: 18 CreateTime: "
         "1795799522999"),
        ("baseOffset: 4 position: 83 size: 110 magic: 2", "baseOffset: 4 position: 84 size: 109 "
         "magic: 2"),
        ("INTERNAL://b6:21827", "INTERNAL://b6:30044"),
        ("hi\n2026-11-27 17:10:55,828 WARN NetworkClient lost", "hi\n\n"),
        (
            "Connecting to 127.0.0.1:9095\n[1, 2, 3]\nWATCHER::\n"
            "WatchedEvent state:SyncConnected type:None path:null",
            "Connecting to 127.0.0.1:9095\nWATCHER::\n"
            "WatchedEvent state:SyncConnected type:None path:null\n[1, 2, 3]",
        ),
        ("hi\n[2026-11-27 17:10:55,828] WARN lost\n\tat a.b(C.java)", "hi"),
    ],
)  # fmt: skip
def test_times_ids_and_placement_are_not_compared(left: str, right: str) -> None:
    assert comparable_lines(left) == comparable_lines(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Topic: a Replicas: 1,2,3 Isr: 1,2,3", "Topic: a Replicas: 1,2,3 Isr: 1,2"),
        ("Topic: a Leader: 1", "Topic: a Leader: none"),
        ("a:0:12", "a:0:13"),
        ("[1, 2, 3]", "[1, 2]"),
        ("Created topic a.", "Created topic b."),
        ("producerId: 7", "producerId: -1"),
        ("INTERNAL://b6:21827", "INTERNAL://b5:21827"),
        ("app a 0 1 1 0 - - -", "app a 0 1 2 1 - - -"),
    ],
)
def test_content_is_compared(left: str, right: str) -> None:
    assert comparable_lines(left) != comparable_lines(right)


def test_difference_names_the_lines_of_one_side_alone() -> None:
    assert difference(["a", "b"], ["a", "c"], is_ordered=True) == ["ours: b", "kafka: c"]
    assert difference(["a", "a"], ["a"], is_ordered=True) == ["ours: a"]
    assert difference(["a"], [], is_ordered=False) == ["ours: a"]


def test_order_counts_only_where_it_means_something() -> None:
    assert difference(["a", "b"], ["b", "a"], is_ordered=False) == []
    assert difference(["a", "b"], ["b", "a"], is_ordered=True)[0].startswith("the order differs")


def test_table_of_new_offsets_has_a_row_for_each_partition() -> None:
    printed = (
        "GROUP    TOPIC    PARTITION  NEW-OFFSET     app  users   2   0    app   users   1   4 "
    )
    rows = ["GROUP TOPIC PARTITION NEW-OFFSET", "app users 2 0", "app users 1 4"]
    assert comparable_lines(printed) == rows
