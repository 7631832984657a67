"""All faults by name. Each fault is a module with one subclass of `Fault`."""

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.add_broker import AddBroker
from urteil.chaos.faults.add_partitions import AddPartitions
from urteil.chaos.faults.allow_unclean import AllowUnclean
from urteil.chaos.faults.bandwidth import Bandwidth
from urteil.chaos.faults.bridge import Bridge
from urteil.chaos.faults.broker_from_zookeeper import BrokerFromZookeeper
from urteil.chaos.faults.client_from_leader import ClientFromLeader
from urteil.chaos.faults.clock_drift import ClockDrift
from urteil.chaos.faults.clock_shift import ClockShift
from urteil.chaos.faults.controller_deleted import ControllerDeleted
from urteil.chaos.faults.crash import Crash
from urteil.chaos.faults.crash_loop import CrashLoop
from urteil.chaos.faults.cut_after import CutAfter
from urteil.chaos.faults.delete_records import DeleteRecords
from urteil.chaos.faults.descriptors import OutOfDescriptors
from urteil.chaos.faults.disk_emptied import DiskEmptied
from urteil.chaos.faults.disk_full import DiskFull
from urteil.chaos.faults.disk_gone import DiskGone
from urteil.chaos.faults.disk_readonly import DiskReadonly
from urteil.chaos.faults.disk_slow import DiskSlow
from urteil.chaos.faults.elect_preferred import ElectPreferred
from urteil.chaos.faults.elect_unclean import ElectUnclean
from urteil.chaos.faults.fault import Fault, Proof
from urteil.chaos.faults.flapping import Flapping
from urteil.chaos.faults.isolate import Isolate
from urteil.chaos.faults.kill_client import KillClient
from urteil.chaos.faults.late_command import LateCommand
from urteil.chaos.faults.latency import Latency
from urteil.chaos.faults.limit import Limit
from urteil.chaos.faults.min_isr import MinIsr
from urteil.chaos.faults.move_directories import MoveDirectories
from urteil.chaos.faults.partition import Partition
from urteil.chaos.faults.pause import Pause
from urteil.chaos.faults.pause_client import PauseClient
from urteil.chaos.faults.power_cut import PowerCut
from urteil.chaos.faults.quota import Quota
from urteil.chaos.faults.raise_replication import RaiseReplication
from urteil.chaos.faults.reassign import Reassign
from urteil.chaos.faults.rebalance_storm import RebalanceStorm
from urteil.chaos.faults.recreate_topic import RecreateTopic
from urteil.chaos.faults.remove_broker import RemoveBroker
from urteil.chaos.faults.reset import Reset
from urteil.chaos.faults.retention import Retention
from urteil.chaos.faults.ring import Ring
from urteil.chaos.faults.rolling_restart import RollingRestart
from urteil.chaos.faults.second_session import SecondSession
from urteil.chaos.faults.segment_damaged import SegmentDamaged
from urteil.chaos.faults.session_expired import SessionExpired
from urteil.chaos.faults.shutdown import Shutdown
from urteil.chaos.faults.slices import Slices
from urteil.chaos.faults.slow_close import SlowClose
from urteil.chaos.faults.slow_poll import SlowPoll
from urteil.chaos.faults.starve import Starve
from urteil.chaos.faults.topic_churn import TopicChurn
from urteil.chaos.faults.unplug import Unplug
from urteil.chaos.faults.upgrade import Upgrade
from urteil.chaos.faults.zookeeper_from_zookeeper import ZookeeperFromZookeeper

FAULTS: dict[str, type[Fault]] = {
    fault.name: fault
    for fault in (
        AddBroker,
        AddPartitions,
        Bandwidth,
        Bridge,
        BrokerFromZookeeper,
        ClientFromLeader,
        ClockDrift,
        ClockShift,
        ControllerDeleted,
        Crash,
        CrashLoop,
        CutAfter,
        DeleteRecords,
        DiskEmptied,
        DiskFull,
        DiskGone,
        DiskReadonly,
        DiskSlow,
        ElectPreferred,
        ElectUnclean,
        AllowUnclean,
        Flapping,
        Isolate,
        KillClient,
        LateCommand,
        Latency,
        Limit,
        MinIsr,
        MoveDirectories,
        OutOfDescriptors,
        Partition,
        Pause,
        PowerCut,
        Quota,
        RaiseReplication,
        Reassign,
        RecreateTopic,
        RemoveBroker,
        Reset,
        Retention,
        Ring,
        PauseClient,
        RebalanceStorm,
        RollingRestart,
        SecondSession,
        SegmentDamaged,
        SessionExpired,
        Shutdown,
        Slices,
        SlowClose,
        Starve,
        TopicChurn,
        SlowPoll,
        Unplug,
        Upgrade,
        ZookeeperFromZookeeper,
    )
}
"""Every fault that a schedule may name."""

__all__ = ["FAULTS", "Fault", "FaultArguments", "Proof"]
