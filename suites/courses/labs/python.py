"""kafka-python's snippets: producer, keys, consumer, group, seek."""

from __future__ import annotations

from urteil.suites.courses.lab import Lab, Python, Tool

LABS = (
    Lab(
        name="kafka-python",
        about="kafka-python: a producer with a callback and keys, a consumer, a group",
        steps=(
            Tool(line="kafka-topics --create --topic python-topic --partitions 3 "
                      "--replication-factor 3"),
            Python(code="""
from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers=['localhost:9092'])
for number in range(10):
    producer.send('python-topic', key=b'id_%d' % number, value=b'hello world %d' % number)
producer.flush()
metadata = producer.send('python-topic', key=b'id_0', value=b'the last').get(timeout=30)
print(metadata.topic, metadata.partition, metadata.offset)
""", shows=("python-topic ",)),
            Python(code="""
import json
from kafka import KafkaProducer

producer = KafkaProducer(
    bootstrap_servers=['localhost:9092'],
    acks='all',
    retries=5,
    key_serializer=str.encode,
    value_serializer=lambda value: json.dumps(value).encode('utf-8'),
)
producer.send('python-topic', key='json', value={'name': 'Alice', 'age': 33}).add_callback(
    lambda metadata: print('sent', metadata.topic, metadata.partition, metadata.offset)
)
producer.close()
""", shows=("sent python-topic ",)),
            Python(code="""
from kafka import KafkaConsumer

consumer = KafkaConsumer(
    'python-topic',
    bootstrap_servers=['localhost:9092'],
    group_id='python-group',
    auto_offset_reset='earliest',
    consumer_timeout_ms=6000,
)
for message in consumer:
    print(message.partition, message.offset, message.key, message.value)
consumer.close()
""", shows=("hello world 9", "the last", "Alice"), is_ordered=False),
            Python(code="""
from kafka import KafkaConsumer, TopicPartition

consumer = KafkaConsumer(bootstrap_servers=['localhost:9092'], consumer_timeout_ms=3000)
partition = TopicPartition('python-topic', 0)
consumer.assign([partition])
print(consumer.beginning_offsets([partition]) == {partition: 0}, consumer.end_offsets([partition]))
consumer.seek(partition, 1)
for message in consumer:
    print(message.offset, message.value)
consumer.close()
""", shows=("True ",)),
            Python(code="""
from kafka import KafkaAdminClient

admin = KafkaAdminClient(bootstrap_servers=['localhost:9092'])
print([topic for topic in admin.list_topics() if topic.startswith('python')])
""", shows=("['python-topic']",)),
            Tool(line="kafka-consumer-groups --describe --group python-group", until=True,
                 is_ordered=False, shows=("python-group python-topic 0", " 0 - - -")),
        ),
    ),
)  # fmt: skip
