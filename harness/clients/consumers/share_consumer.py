"""A member of a share group (KIP-932), which acknowledges each record that it is delivered.

    python -m urteil.harness.clients.consumers.share_consumer SPEC.json

Processing a record means journaling it. Then the member accepts, releases or rejects it, by the
seed. Each member first gives the group the settings of the run, so that the group begins at the
start of the topics, and its locks last as long as the workload says.
"""

from __future__ import annotations

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import InvalidConfigurationError, KafkaError

from urteil.chaos.capabilities import SHARE_GROUPS
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.libraries import CONFLUENT, JAVA
from urteil.harness.clients.options import GroupOptions, ShareOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.workload_kinds import share_member_count
from urteil.harness.evidence.journal import JournalWriter

RETRY_S = 0.2


def group_settings(spec: ClientSpec) -> dict[str, str]:
    """The settings of the group."""
    return {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": str(ShareOptions.of(spec.workload).lock_ms),
    }


def configure_group(spec: ClientSpec, stop: Stop) -> None:
    """Give the group its settings, however often a broker fails meanwhile. KafkaError for a setting
    that brokers do not accept."""
    group = ConfigResource(
        ConfigResourceType.GROUP, spec.workload.group, configs=group_settings(spec)
    )
    while not stop.is_set():
        try:
            admin = KafkaAdminClient(
                bootstrap_servers=list(spec.bootstrap),
                client_id=spec.client,
                request_timeout_ms=spec.workload.request_timeout_ms,
            )
        except KafkaError:
            stop.wait(RETRY_S)
            continue
        try:
            admin.alter_configs([group])
            return
        except InvalidConfigurationError:
            raise
        except KafkaError:
            stop.wait(RETRY_S)
        finally:
            admin.close()


def share(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Process and acknowledge records until the stop is requested."""
    from urteil.harness.clients.libraries.share_member import ShareMember

    configure_group(spec, stop)
    member = ShareMember(spec, journal)
    while not stop.is_set():
        member.step(stop)
    member.close()


KIND = ClientKind(
    name="share_consumer",
    about="A member of a share group that accepts, releases or rejects each record it is "
    "delivered.",
    stage=Stage.READS,
    judged_by=("settled_redelivered", "two_holders", "unsettled_record", "delivery_over_limit"),
    prefix="m",
    count=lambda scenario: share_member_count(scenario.workload),
    work=share,
    needs=lambda _: (SHARE_GROUPS,),
    options=(ShareOptions, GroupOptions),
    libraries=(CONFLUENT, JAVA),
)

if __name__ == "__main__":
    run_client(KIND)
