"""Responses of brokers: metadata, offsets, timestamps, and answers that are known beforehand."""
