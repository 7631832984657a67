// Produce, consume, group, transaction and administration with KafkaJS.
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, prefix] = process.argv.slice(2)
const topic = `${prefix}-data`
const groupId = `${prefix}-group`
const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.NOTHING })

async function withAdmin(act) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await act(admin)
  } finally {
    await admin.disconnect()
  }
}

// A broker may hear of a topic later than its maker.
async function patiently(act) {
  for (const deadline = Date.now() + 30_000; ;) {
    try {
      return await act()
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
  }
}

const administration = () =>
  withAdmin(async admin => {
    const configEntries = [{ name: 'retention.ms', value: '3600000' }]
    const topics = [{ topic, numPartitions: 3, replicationFactor: 3, configEntries }]
    await admin.createTopics({ topics, waitForLeaders: true })
    const again = (await admin.createTopics({ topics })) ? 'created' : 'exists'
    const { resources } = await patiently(() => admin.describeConfigs({ resources: [{ type: 2, name: topic }] }))
    const retention = resources[0].configEntries.find(one => one.configName === 'retention.ms')
    const gone = `${prefix}-gone`
    await admin.createTopics({ topics: [{ topic: gone, numPartitions: 1, replicationFactor: 1 }] })
    await admin.createPartitions({ topicPartitions: [{ topic: gone, count: 2 }] })
    await admin.deleteTopics({ topics: [gone] })
    const brokers = (await admin.describeCluster()).brokers.map(one => one.nodeId).sort()
    return { retention: retention.configValue, again, brokers }
  })

async function produce() {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  const last = [-1, -1, -1]
  for (let first = 0; first < 90; first += 30) {
    const messages = Array.from({ length: 30 }, (_, at) => {
      const n = String(first + at)
      return { value: `value ${n}`, key: `key ${n}`, partition: (first + at) % 3, headers: { n } }
    })
    for (const metadata of await producer.send({ topic, messages })) {
      last[metadata.partition] = Number(metadata.baseOffset) + 9
    }
  }
  await producer.disconnect()
  return { last }
}

// All records up to the ends, read by a group of its own.
async function everything(isolated) {
  const ends = await withAdmin(admin => admin.fetchTopicOffsets(topic))
  const name = `${groupId}-${isolated ? 'committed' : 'all'}-${Date.now()}`
  const consumer = kafka.consumer({ groupId: name, readUncommitted: !isolated })
  const seen = [[], [], []]
  const left = new Set(ends.filter(one => Number(one.high) > 0).map(one => one.partition))
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      const end = Number(ends.find(one => one.partition === payload.partition).high)
      if (Number(payload.lastOffset) + 1 >= end) left.delete(payload.partition)
      if (!left.size) resolve()
    })
    const eachMessage = async ({ partition, message }) => seen[partition].push(message)
    consumer.run({ eachMessage }).catch(reject)
  })
  await consumer.disconnect()
  return seen.flat()
}

async function consume() {
  const found = await everything(false)
  return { records: found.map(one => [one.value, one.key, one.headers.n].map(String)) }
}

async function group() {
  const consumer = kafka.consumer({ groupId })
  let read = 0
  const next = [0, 0, 0]
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await new Promise((resolve, reject) => {
    const eachMessage = async ({ partition, message }) => {
      next[partition] = Number(message.offset) + 1
      if (++read === 90) resolve()
    }
    consumer.run({ autoCommit: false, eachMessage }).catch(reject)
  })
  await consumer.commitOffsets(next.map((at, partition) => ({ topic, partition, offset: String(at) })))
  await consumer.disconnect()
  return withAdmin(async admin => {
    const [known] = await admin.fetchOffsets({ groupId, topics: [topic] })
    const offsets = known.partitions.sort((a, b) => a.partition - b.partition)
    const { groups } = await admin.describeGroups([groupId])
    return { read, committed: offsets.map(one => Number(one.offset)), state: groups[0].state.toUpperCase() }
  })
}

async function transaction() {
  const producer = kafka.producer({ transactionalId: `${prefix}-txn`, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (const fate of ['aborted', 'committed']) {
    const open = await producer.transaction()
    const messages = Array.from({ length: 10 }, (_, n) => ({ value: `${fate} ${n}`, partition: 0 }))
    await open.send({ topic, messages })
    if (fate === 'aborted') {
      await open.abort()
    } else {
      const topics = [{ topic, partitions: [{ partition: 0, offset: '7' }] }]
      await open.sendOffsets({ consumerGroupId: groupId, topics })
      await open.commit()
    }
  }
  await producer.disconnect()
  const offset = await withAdmin(async admin => {
    for (const deadline = Date.now() + 30_000; ;) {
      const [known] = await admin.fetchOffsets({ groupId, topics: [topic] })
      const at = Number(known.partitions.find(one => one.partition === 0).offset)
      // This client does not ask for stable offsets.
      if (at !== 30 || Date.now() > deadline) return at
    }
  })
  return {
    read_committed: (await everything(true)).length,
    read_uncommitted: (await everything(false)).length,
    offset,
  }
}

async function main() {
  const outcome = {}
  for (const part of [administration, produce, consume, group, transaction]) {
    outcome[part.name] = await part()
  }
  console.log(JSON.stringify(outcome))
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
