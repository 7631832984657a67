"""Lookups of offsets that return another record than the one they are asked for."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-16310",
        issue="KAFKA-16310",
        about="ListOffsets for the largest timestamp returns the last offset of a batch instead "
        "of the offset of the record with that timestamp.",
        releases="3.7.0 to 3.7.2",
        fixed_in="3.8.0",
        broken="3.7.1",
        fixed="3.8.0",
        scenario="largest-timestamp",
        guarantee="time_index_wrong",
        sub_kinds=("other time",),
    ),
)
