"""Compacted logs that are not cleaned any more."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-5431",
        issue="KAFKA-5431",
        about="With log.preallocate a cleaned segment has zeros behind its records; the cleaner "
        "reads them at its next cleaning, and ends.",
        releases="0.10.2.1 and 0.11.0.0",
        fixed_in="0.11.0.1",
        broken="0.11.0.0",
        fixed="0.11.0.1",
        scenario="preallocated-segments",
        guarantee="kept_too_long",
        sub_kinds=("superseded",),
    ),
)
