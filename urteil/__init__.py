"""Urteil: a chaos lab for Kafka-protocol clusters."""
