"""2,000 partitions on 3 brokers: creation, memory, and failover after a crash."""

from __future__ import annotations

import statistics
import time

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from load_tools import Load

from urteil.chaos.waiting import until

PARTITIONS = 2000
A_TOPIC = 100
LED_DEADLINE_S = 300
POLL_S = 0.05
KILLS = 3
PREFERRED = 0
ROWS = {
    "create_2000_s": "create 2,000 partitions x 3 replicas on 3 brokers (s)",
    "rss_2000_mb": "resident memory a broker with 2,000 partitions (MB)",
    "failover_2000_s": "SIGKILL of a broker until all 2,000 are led again, median of 3 (s)",
    "led_after_session_s": "of that, after ZooKeeper ended its session, median of 3 (s)",
}


def measure(load: Load, _scale: float) -> dict[str, float]:
    """Create 20 topics of 100 partitions at any scale, then end a broker that is not the
    controller, three times: ZooKeeper detects that after a random time of 2 to 3.5 s."""
    admin = KafkaAdminClient(bootstrap_servers=load.cluster.bootstrap[0], request_timeout_ms=60_000)
    began = time.monotonic()
    for first in range(0, PARTITIONS, A_TOPIC):
        admin.create_topics([NewTopic(f"many-{first}", A_TOPIC, 3)], timeout_ms=60_000)
    _await_leaders(admin, without=0)
    figures = {"create_2000_s": time.monotonic() - began}
    load.settle()
    figures["rss_2000_mb"] = load.rss_mb()
    noticed, led = [], []
    for number in range(KILLS):
        controller = load.cluster.controls().controller()
        victim = next(node for node in ("b3", "b2") if node != controller)
        session_end_s, led_s = _kill(load, admin, victim)
        noticed.append(led_s - session_end_s)
        led.append(led_s)
        if number < KILLS - 1:
            _restore(load, admin, victim)
    admin.close()
    figures["failover_2000_s"] = statistics.median(led)
    figures["led_after_session_s"] = statistics.median(noticed)
    return figures


def _kill(load: Load, admin: KafkaAdminClient, victim: str) -> tuple[float, float]:
    """Seconds after the crash until the session ended, and until all partitions had a leader."""
    controls = load.cluster.controls()
    began = time.monotonic()
    controls.kill(victim)
    if not until(
        lambda: victim not in controls.registered_brokers(),
        deadline_s=LED_DEADLINE_S,
        poll_s=POLL_S,
    ):
        raise TimeoutError(f"{victim} is still registered after {LED_DEADLINE_S} s")
    session_end_s = time.monotonic() - began
    _await_leaders(admin, without=int(victim[1:]))
    return session_end_s, time.monotonic() - began


def _restore(load: Load, admin: KafkaAdminClient, broker: str) -> None:
    """Wait until the broker is in sync everywhere and leads its preferred partitions."""
    load.cluster.controls().start(broker)
    load.cluster.await_healthy(deadline_s=LED_DEADLINE_S)
    admin.elect_leaders(PREFERRED, raise_errors=False)
    load.settle()


def _await_leaders(admin: KafkaAdminClient, *, without: int) -> None:
    """Wait until broker 1 reports a leader other than `without` for every partition."""

    def are_led() -> bool:
        leaders = [
            partition["leader_id"]
            for topic in admin.describe_topics()
            if topic["name"].startswith("many-")
            for partition in topic["partitions"]
        ]
        return len(leaders) == PARTITIONS and not {-1, without} & set(leaders)

    if not until(are_led, deadline_s=LED_DEADLINE_S, poll_s=POLL_S):
        raise TimeoutError(f"{PARTITIONS} partitions are not all led after {LED_DEADLINE_S} s")
