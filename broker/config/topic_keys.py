"""Kafka 3.9's topic settings: `name|type|default|range|broker properties`.

The first broker property that is set is the default.
"""

TABLE = """\
cleanup.policy|list|delete||log.cleanup.policy
compression.gzip.level|int|-1||compression.gzip.level
compression.lz4.level|int|9|1..17|compression.lz4.level
compression.type|string|producer||compression.type
compression.zstd.level|int|3|-131072..22|compression.zstd.level
delete.retention.ms|long|86400000|0..|log.cleaner.delete.retention.ms
file.delete.delay.ms|long|60000|0..|log.segment.delete.delay.ms
flush.messages|long|9223372036854775807|1..|log.flush.interval.messages
flush.ms|long|9223372036854775807|0..|log.flush.interval.ms,log.flush.scheduler.interval.ms
follower.replication.throttled.replicas|list|''||
index.interval.bytes|int|4096|0..|log.index.interval.bytes
leader.replication.throttled.replicas|list|''||
local.retention.bytes|long|-2|-2..|log.local.retention.bytes
local.retention.ms|long|-2|-2..|log.local.retention.ms
max.compaction.lag.ms|long|9223372036854775807|1..|log.cleaner.max.compaction.lag.ms
max.message.bytes|int|1048588|0..|message.max.bytes
message.downconversion.enable|boolean|true||log.message.downconversion.enable
message.format.version|string|3.0-IV1||log.message.format.version
message.timestamp.after.max.ms|long|9223372036854775807|0..|log.message.timestamp.after.max.ms
message.timestamp.before.max.ms|long|9223372036854775807|0..|log.message.timestamp.before.max.ms
message.timestamp.difference.max.ms|long|9223372036854775807|0..|\
log.message.timestamp.difference.max.ms
message.timestamp.type|string|CreateTime||log.message.timestamp.type
min.cleanable.dirty.ratio|double|0.5|0..1|log.cleaner.min.cleanable.ratio
min.compaction.lag.ms|long|0|0..|log.cleaner.min.compaction.lag.ms
min.insync.replicas|int|1|1..|min.insync.replicas
preallocate|boolean|false||log.preallocate
remote.log.copy.disable|boolean|false||
remote.log.delete.on.disable|boolean|false||
remote.storage.enable|boolean|false||
retention.bytes|long|-1||log.retention.bytes
retention.ms|long|604800000|-1..|log.retention.ms,log.retention.minutes,log.retention.hours
segment.bytes|int|1073741824|14..|log.segment.bytes
segment.index.bytes|int|10485760|4..|log.index.size.max.bytes
segment.jitter.ms|long|0|0..|log.roll.jitter.ms,log.roll.jitter.hours
segment.ms|long|604800000|1..|log.roll.ms,log.roll.hours
unclean.leader.election.enable|boolean|false||unclean.leader.election.enable
"""
