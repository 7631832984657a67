"""Records that one client read, and that every later client skipped.

Without a column `pass`, a seek or a rebalance cannot be distinguished from a loss. So such a record
is a reason for UNKNOWN, not a violation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Place = tuple[str, int]
"""Topic id and partition."""


def find_skipped_records(sends: pa.Table, reads: pa.Table, compacted: set[str]) -> Iterator[str]:
    """A sentence for each partition with such records, about the first of them.

    Records of transactions and of compacted topics are ignored: readers may rightly skip them.
    """
    open_ended = set(sends.filter(pc.is_valid(sends["txn"]))["value_id"].to_pylist())
    last: dict[Place, dict[int, int]] = defaultdict(dict)
    own: set[tuple[str, Place, int]] = set()
    stretches: dict[tuple[Any, ...], list[tuple[int, int]]] = defaultdict(list)
    names: dict[Place, str] = {}
    columns = ("topic", "topic_id", "partition", "offset", "read_ns", "client", "session")
    rows = reads.sort_by([(name, "ascending") for name in ("poll", "position_in_poll")])
    values = zip(*(rows[name].to_pylist() for name in (*columns, "value_id")), strict=True)
    for topic, topic_id, partition, offset, read_ns, client, session, value_id in values:
        if None in (offset, read_ns) or topic in compacted or value_id in open_ended:
            continue
        place = topic_id, partition
        names[place] = topic
        last[place][offset] = max(read_ns, last[place].get(offset, read_ns))
        own.add((client, place, offset))
        stretches[client, session, place].append((offset, read_ns))
    skipped: dict[Place, int] = {}
    for (client, _, place), given in stretches.items():
        known = sorted(last[place])
        for (before, since_ns), (offset, _) in pairwise(given):
            for gone in known[bisect_left(known, before + 1) : bisect_left(known, offset)]:
                if last[place][gone] < since_ns and (client, place, gone) not in own:
                    skipped[place] = min(gone, skipped.get(place, gone))
    for place, offset in sorted(skipped.items(), key=str):
        yield (
            f"{names[place]}-{place[1]}: the record at offset {offset} was read, and passed over "
            "by every later reader: it is lost, or a seek or rebalance moved them past it "
            "(reads with a column pass would decide)"
        )
