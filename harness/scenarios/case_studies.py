"""Case studies: a company's topics, its stream processing, and what its business requires.

Topics, keys and retention follow the design that docs/guide/case-studies.md explains.
"""

from __future__ import annotations

from urteil.harness.clients.applications.gettaxi import TAXIS, USERS
from urteil.harness.clients.applications.logs import LOGS, METRICS
from urteil.harness.clients.applications.movieflix import POSITIONS
from urteil.harness.clients.applications.mybank import THRESHOLDS, TRANSACTIONS
from urteil.harness.clients.applications.mysocialmedia import COMMENTS, LIKES, POSTS
from urteil.harness.clients.applications.truckgps import LIMITS
from urteil.harness.clients.applications.truckgps import POSITIONS as TRUCKS
from urteil.harness.scenario import Scenario, TopicSpec
from urteil.harness.scenarios.applications import KILLED_AND_CUT, SAFE, SUITES, load
from urteil.harness.scenarios.common import REPLICATION, cluster

SHORTLY = {"retention.ms": "3600000"}
LONG = {"retention.ms": "-1"}

MYBANK = Scenario(
    name="mybank",
    about="case study: an alert for every transaction above the threshold valid at its time, and "
    "none for others; Flink is killed, a broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load(
        "mybank",
        TopicSpec(name=TRANSACTIONS, config=SAFE | LONG),
        TopicSpec(name=THRESHOLDS, config=SAFE | LONG),
        producers=1,
    ),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=42.0,
)
"""One producer: its events reach each partition in the order of their times."""

MOVIEFLIX = Scenario(
    name="movieflix",
    about="case study: a viewer resumes at the last acknowledged position, over 30 partitions; "
    "Spark is killed, a broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load(
        "movieflix",
        TopicSpec(name=POSITIONS, partitions=30, config=SAFE | SHORTLY),
        keys=240,
    ),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=42.0,
)

MYSOCIALMEDIA = Scenario(
    name="mysocialmedia",
    about="case study: the likes and comments of each post are counted once; Spark is killed, a "
    "broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load(
        "mysocialmedia",
        TopicSpec(name=POSTS, config=SAFE | LONG),
        TopicSpec(name=LIKES, config=SAFE | LONG),
        TopicSpec(name=COMMENTS, config=SAFE | LONG),
    ),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=42.0,
)

GETTAXI = Scenario(
    name="gettaxi",
    about="case study: surge prices equal those recomputed from all positions; Spark is killed, a "
    "broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load(
        "gettaxi",
        TopicSpec(name=TAXIS, partitions=6, config=SAFE | SHORTLY),
        TopicSpec(name=USERS, partitions=6, config=SAFE | SHORTLY),
    ),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=42.0,
)

INGESTION = Scenario(
    name="ingestion",
    about="case study: the lake has every record of all sources once; Spark is killed, a broker "
    "crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load(
        "ingestion",
        TopicSpec(name="website-visits", config=SAFE | SHORTLY),
        TopicSpec(name="orders", config=SAFE | SHORTLY),
    ),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=42.0,
)

LOG_AGGREGATION = Scenario(
    name="logs",
    about="case study: the index has every line of logs and metrics once, and the rate of errors "
    "is that of the lines; Spark is killed, a broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load(
        "logs",
        TopicSpec(name=LOGS, partitions=6, config=SAFE | SHORTLY),
        TopicSpec(name=METRICS, config=SAFE | SHORTLY),
    ),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=42.0,
)

TRUCKGPS = Scenario(
    name="truck-gps",
    about="case study: the last position of each truck, and a notification of each speed above "
    "the limit valid at its time; Flink is killed, a broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load(
        "truckgps",
        TopicSpec(name=TRUCKS, partitions=10, config=SAFE | SHORTLY),
        TopicSpec(name=LIMITS, config=SAFE | LONG),
        producers=1,
    ),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=42.0,
)
"""One producer, as for MyBank."""
