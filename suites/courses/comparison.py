"""Rules of comparison: the permitted differences between outputs of two clusters.

Times, generated ids, addresses and placement are replaced by words. Log lines of the tool are
removed: its warnings depend on timing. So are the session events of zookeeper-shell, which another
thread prints.
"""

from __future__ import annotations

import re

UNTIMED_LINE = re.compile(
    r"^(WATCHER::$|WatchedEvent state:"
    r"|\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]? |SLF4J: |\tat |\s*\.\.\. \d+ more)"
)
RULES = [
    (re.compile(pattern), word)
    for pattern, word in (
        # Addresses.
        (r"localhost\.localdomain|localhost", "<host>"),
        (r"/?\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "<host>"),
        (r"(?<=<host>):\d+", ":<port>"),
        (r"(?<=://b)(\d+):\d+", r"\1:<port>"),
        (r'"port":\d+', '"port":<port>'),
        (r"(<host>:<port>,)+<host>:<port>", "<host>:<port>"),
        # Generated ids.
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
        (r"(TopicId|Cluster ID): [\w-]{22}", r"\1: <id>"),
        (r"\b(console-consumer|console-producer)-\d+\b", r"\1-<number>"),
        (r"\b(producerId): (?!-1)\d+", r"\1: <id>"),
        # Times.
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,:]\d{1,3}(Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b1[6-9]\d{11}\b", "<time>"),
        (r"\bcrc: \d+", "crc: <crc>"),
        # Placement.
        (r"\b(Leader): (?!none)\d+", r"\1: <broker>"),
        (r"\b(LastKnownElr|Elr): *(N/A)?", r"\1:"),
        (r'"(brokerid|leader)":\d+', r'"\1":<broker>'),
        (r"<host>:<port>[ \t]+\((id: )?\d+", r"<host>:<port> (\1<broker>"),
        (r"/\S+(?=/[\w.-]+-\d+/\d{20}\.)", "<folder>"),
        (r'"logDir":"[^"]*"', '"logDir":"<folder>"'),
        # Sizes in bytes, since times in a batch have few bytes or many, and widths of columns.
        (r"\b(position): \d+", r"\1: <bytes>"),
        (r"\b(size): \d+(?= magic)", r"\1: <bytes>"),
        (r"[ \t]+", " "),
    )
]
NEW_OFFSETS = "GROUP TOPIC PARTITION NEW-OFFSET"
BROKERS = re.compile(r"\b(Replicas|Isr): ?(\d+(?:,\d+)*)?")


def comparable_lines(output: str) -> list[str]:
    """The lines of an output with the words of `RULES`, without log lines, session events and
    empty lines."""
    lines = (_comparable(line) for line in output.splitlines() if not UNTIMED_LINE.match(line))
    return [row for line in lines for row in _rows(line) if row]


def _rows(line: str) -> list[str]:
    """The rows of a table of new offsets, which kafka-consumer-groups of 3.9 prints in one line."""
    if not line.startswith(NEW_OFFSETS):
        return [line]
    words = line.split(" ")
    return [" ".join(words[at : at + 4]) for at in range(0, len(words), 4)]


def _comparable(line: str) -> str:
    line = BROKERS.sub(_broker_count, line)
    for pattern, word in RULES:
        line = pattern.sub(word, line)
    return line.strip()


def _broker_count(match: re.Match[str]) -> str:
    count = len(match[2].split(",")) if match[2] else 0
    return f"{match[1]}: <{count} brokers>"


def difference(ours: list[str], theirs: list[str], *, is_ordered: bool) -> list[str]:
    """The lines of one output alone, marked `ours` and `kafka`. Empty for equal ones."""
    if not is_ordered:
        ours, theirs = sorted(ours), sorted(theirs)
    if ours == theirs:
        return []
    only_ours, only_theirs = _minus(ours, theirs), _minus(theirs, ours)
    if not only_ours and not only_theirs:
        return [f"the order differs; ours: {' | '.join(ours)}", f"kafka: {' | '.join(theirs)}"]
    return [*(f"ours: {line}" for line in only_ours), *(f"kafka: {line}" for line in only_theirs)]


def _minus(left: list[str], right: list[str]) -> list[str]:
    remaining = list(right)
    missing = []
    for line in left:
        if line in remaining:
            remaining.remove(line)
        else:
            missing.append(line)
    return missing
