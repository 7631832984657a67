"""Committed offsets of groups that a coordinator returns wrongly."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-5600",
        issue="KAFKA-5600",
        about="A new coordinator that loads the offsets of a group in several pieces keeps those "
        "of the first piece, and returns them in place of later commits.",
        releases="0.11.0.0",
        fixed_in="0.11.0.1",
        broken="0.11.0.0",
        fixed="0.11.0.1",
        scenario="offsets-loaded-in-pieces",
        guarantee="commit_went_back",
        sub_kinds=("went back",),
        also=("commit_register",),
    ),
    KnownBug(
        name="kafka-8069",
        issue="KAFKA-8069",
        about="A new coordinator takes the committed offsets that it loads for expired, when the "
        "brokers speak the protocol of an older release, and deletes them.",
        releases="2.1.0 and 2.1.1",
        fixed_in="2.2.0",
        broken="2.1.1",
        fixed="2.2.2",
        scenario="offsets-of-older-protocol",
        guarantee="commit_went_back",
        sub_kinds=("went back",),
        also=("commit_register",),
    ),
)
