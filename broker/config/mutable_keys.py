"""Broker properties that administrators may change while a broker runs, by Apache Kafka 3.9.

DescribeConfigs calls all others read-only (`DynamicBrokerConfig.AllDynamicConfigs`).
"""

_NAMES = """\
advertised.listeners
background.threads
compression.gzip.level
compression.lz4.level
compression.type
compression.zstd.level
listener.security.protocol.map
listeners
log.cleaner.backoff.ms
log.cleaner.dedupe.buffer.size
log.cleaner.delete.retention.ms
log.cleaner.io.buffer.load.factor
log.cleaner.io.buffer.size
log.cleaner.io.max.bytes.per.second
log.cleaner.max.compaction.lag.ms
log.cleaner.min.cleanable.ratio
log.cleaner.min.compaction.lag.ms
log.cleaner.threads
log.cleanup.policy
log.flush.interval.messages
log.flush.interval.ms
log.index.interval.bytes
log.index.size.max.bytes
log.local.retention.bytes
log.local.retention.ms
log.message.downconversion.enable
log.message.timestamp.after.max.ms
log.message.timestamp.before.max.ms
log.message.timestamp.difference.max.ms
log.message.timestamp.type
log.preallocate
log.retention.bytes
log.retention.ms
log.roll.jitter.ms
log.roll.ms
log.segment.bytes
log.segment.delete.delay.ms
max.connection.creation.rate
max.connections
max.connections.per.ip
max.connections.per.ip.overrides
message.max.bytes
metric.reporters
min.insync.replicas
num.io.threads
num.network.threads
num.recovery.threads.per.data.dir
num.replica.fetchers
principal.builder.class
producer.id.expiration.ms
remote.fetch.max.wait.ms
remote.log.index.file.cache.total.size.bytes
remote.log.manager.copy.max.bytes.per.second
remote.log.manager.fetch.max.bytes.per.second
sasl.enabled.mechanisms
sasl.jaas.config
sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin
sasl.kerberos.principal.to.local.rules
sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor
sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds
sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter
sasl.mechanism.inter.broker.protocol
ssl.cipher.suites
ssl.client.auth
ssl.enabled.protocols
ssl.endpoint.identification.algorithm
ssl.engine.factory.class
ssl.key.password
ssl.keymanager.algorithm
ssl.keystore.certificate.chain
ssl.keystore.key
ssl.keystore.location
ssl.keystore.password
ssl.keystore.type
ssl.protocol
ssl.provider
ssl.secure.random.implementation
ssl.trustmanager.algorithm
ssl.truststore.certificates
ssl.truststore.location
ssl.truststore.password
ssl.truststore.type
transaction.partition.verification.enable
unclean.leader.election.enable
"""

DYNAMIC = frozenset(_NAMES.splitlines())

SECURITY = frozenset(
    f"ssl.{what}"
    for what in (
        "key.password", "keystore.certificate.chain", "keystore.key", "keystore.location",
        "keystore.password", "keystore.type", "truststore.certificates", "truststore.location",
        "truststore.password", "truststore.type",
    )
)  # fmt: skip
"""Properties of listeners only (`SslConfigs.RECONFIGURABLE_CONFIGS`)."""

PER_BROKER = SECURITY | {
    name
    for name in DYNAMIC
    if name.startswith(("sasl.", "ssl.", "advertised.", "listener"))
    or name == "principal.builder.class"
}
"""Properties of single brokers only (`DynamicBrokerConfig.PerBrokerConfigs`)."""
