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
    KnownBug(
        name="kafka-6429",
        issue="KAFKA-6429",
        about="While a log closes its first segment, the cleaner finds no closed segment to check, "
        "and then takes the first one for old enough, within min.compaction.lag.ms.",
        releases="0.10.1.0 to 1.0.2",
        fixed_in="1.1.0",
        broken="1.0.2",
        fixed="1.1.1",
        scenario="cleaned-within-lag",
        guarantee="compacted_too_early",
        sub_kinds=("inside the lag",),
    ),
)
