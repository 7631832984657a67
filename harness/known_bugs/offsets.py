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
)
