"""The case study GetTaxi: surge prices of each zone, by demand and supply.

Taxis and users send positions with themselves as key. A zone is a quarter of all keys. Its surge
price in a window of time is the number of users' positions for every hundred of taxis' positions.
"""

from __future__ import annotations

from urteil.harness.clients.applications.programs.spark_queries import Query
from urteil.harness.clients.applications.spark_application import SAFE, spark_application
from urteil.harness.scenario import TopicSpec

TAXIS, USERS, PRICES = "taxi-position", "user-position", "surge-pricing"
ZONES, WINDOW_MS = 4, 5_000
READ_TIME = "by-time-of-reading"
"""The variant whose windows go by the time at which Spark reads a position."""
PRICED = f"""
SELECT CONCAT(z.zone, '@', z.began) AS key,
  CONCAT(SUM(z.is_user) * 100 DIV CASE WHEN SUM(z.is_taxi) = 0 THEN 1 ELSE SUM(z.is_taxi) END, '%')
    AS value
FROM (
  SELECT TRY_CAST(SUBSTRING(i.key, 2) AS INT) % {ZONES} AS zone,
    {{time}} DIV {WINDOW_MS} AS began,
    CASE WHEN i.topic = '{USERS}' THEN 1 ELSE 0 END AS is_user,
    CASE WHEN i.topic = '{TAXIS}' THEN 1 ELSE 0 END AS is_taxi
  FROM {{table}} i) z
GROUP BY z.zone, z.began"""


def price_query(time: str) -> Query:
    """The query whose windows go by this time in milliseconds."""
    sql = PRICED.format(table="records", time=time)
    return Query(name=PRICES, sink="topic", topic=PRICES, sql=sql)


EXPECTED = f"""
SELECT '{PRICES}' AS sink, p.key, p.value, 'latest' AS mode, 1 AS due
FROM ({PRICED.format(table="inputs", time="i.timestamp_ms")}) p
"""

APPLICATION = spark_application(
    name="gettaxi",
    about="GetTaxi: Spark computes the surge price of each zone and window",
    queries=(price_query("i.timestamp_ms"),),
    topics=(TopicSpec(name=PRICES, config=SAFE),),
    expected=EXPECTED,
    variants={READ_TIME: (price_query("unix_millis(current_timestamp())"),)},
)
