"""Reasons that several mutants share: why suites/simulation cannot find them.

Clients are those of the mixes that the guarantee of a mutant judges. The examiner of the mix
`questions`, which sends requests of every kind, is judged by `wrong_answer` alone.
"""

INVALID_REQUESTS = "no client sends invalid requests"

SECURITY = "brokers have neither SASL nor ACLs"
QUOTAS = "no client has a quota"
PROCESSOR_TIME = "requests of the simulation take no processor time"
LOG_DIRECTORIES = "brokers have one log directory"
RECOMPRESSION = "no topic recompresses batches"
BANDWIDTH = "no link has a low bandwidth"

NOT_FOUND = "not found by seed 1 of its mix"
NOT_FOUND_BY_THREE = "not found by seeds 1 to 3 of its mix"
UNREACHED = "seeds 1 to 3 of its mix did not reach its line"
