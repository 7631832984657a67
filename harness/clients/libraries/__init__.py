"""The client libraries that can play a workload, and the clients of all but kafka-python."""

KAFKA_PYTHON, CONFLUENT, AIOKAFKA, VERIFIABLE, JAVA = LIBRARIES = (
    "kafka-python",
    "confluent-kafka",
    "aiokafka",
    "verifiable",
    "java",
)
"""Names of libraries in `WorkloadSpec.client`. `verifiable` is the Java client, played by the tools
of Apache Kafka's system tests; `java` is the transactional producer of the newest Java client."""
