"""The labs of Kafka courses, typed: over our cluster and over Apache Kafka, outputs compared."""
