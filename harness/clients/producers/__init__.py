"""The clients that send records at a rate, and their records and attempts."""
