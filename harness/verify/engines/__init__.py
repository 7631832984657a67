"""What runs the checks: Spark, and DuckDB with the same SQL."""
