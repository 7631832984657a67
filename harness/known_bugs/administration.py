"""Requests of administrators that are answered wrong."""

from urteil.harness.known_bugs.known_bug import KnownBug

BUGS = (
    KnownBug(
        name="kafka-14337",
        issue="KAFKA-14337",
        about="A topic with a period in its name cannot be created again after its deletion: the "
        "controller fails at what is left of it in its table of such names.",
        releases="3.3.0 and 3.3.1, without ZooKeeper",
        fixed_in="3.3.2",
        broken="3.3.1",
        fixed="3.3.2",
        scenario="colliding-names",
        guarantee="wrong_answer",
        sub_kinds=("answer",),
        target="kafka-kraft",
    ),
)
