"""The client libraries that can play a workload, and the clients of all but kafka-python."""

KAFKA_PYTHON, CONFLUENT, AIOKAFKA, VERIFIABLE = LIBRARIES = (
    "kafka-python",
    "confluent-kafka",
    "aiokafka",
    "verifiable",
)
"""Names of libraries in `WorkloadSpec.client`. `verifiable` is the Java client, played by the tools
of Apache Kafka's system tests."""
