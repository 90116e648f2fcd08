"""
The keys of logs. The entity is a job: the name under which producers and aggregations of logs find each other.

People who run commands and write callbacks name jobs, aggregations and tables, so there are few of them. The limit of
bytes in flight bounds the keys that grow with lines, the largest number of files bounds those that grow with files,
and the number of days to keep bounds those that grow with days.
"""

from components.kit.keyspace import SharedKey, stem
from components.kit.validation import check_name


class JobKeys:
    """The keys of *job*, named as in the scripts. Raises InvalidName."""

    def __init__(self, job: str) -> None:
        self.job = check_name("log job", job)
        self._stem = stem("logs", job)

    stream = SharedKey(
        "STREAM of descriptors of chunks, with a group for each aggregation. An entry goes with its chunk."
    )

    def chunk(self, chunk: str) -> str:
        """STRING id of a chunk -> whole lines, compressed. Goes when each aggregation has counted it."""
        return f"{self._stem}chunk:{chunk}"

    counted = SharedKey(
        "HASH id of a chunk -> numbers of the aggregations that have counted it. A field goes with the chunk."
    )
    aggregations = SharedKey(
        "HASH name of an aggregation -> its number and lease. A field goes when the aggregation leaves."
    )
    state = SharedKey(
        "HASH of figures. In flight: bytes and chunks, and the limit of these bytes as the last producer gave it. "
        "Since the beginning: lines and raw bytes that were copied, lines that were skipped, aggregations that "
        "have joined. Stays."
    )
    files = SharedKey(
        "HASH fingerprint of a file -> how far it is copied. Stays until it is forgotten. A million fields at "
        "most: after that no new file is copied."
    )
    seen = SharedKey(
        "ZSET fingerprint by the millisecond at which the file was last looked at or copied. Goes with the file."
    )
    heads = SharedKey("SET of numbers of bytes that fingerprints were made of, from 1 to 4,096. Stays.")
    room = SharedKey(
        "LIST of at most one token that wakes a producer when there is room. Goes when a producer takes it."
    )

    def call(self, consumer: str) -> str:
        """LIST last claim of a consumer and its answer, in case it asks again. Expires after a minute."""
        return f"{self._stem}call:{consumer}"

    def flushed(self, consumer: str) -> str:
        """STRING last batch that a consumer has flushed, in case it asks again. Expires after an hour."""
        return f"{self._stem}flushed:{consumer}"

    dead = SharedKey(
        'ZSET "<id of a chunk> <aggregation>" by the millisecond it was given up. Goes when it is sent again.'
    )

    def counts(self, table: str) -> str:
        """HASH member of a table -> count. Goes when its day is not kept any more, or when it is dropped."""
        return f"{self._stem}table:{table}"

    def samples(self, aggregation: str) -> str:
        """ZSET JSON of a rejected line by its millisecond; the newest 100. Goes when the aggregation leaves."""
        return f"{self._stem}samples:{aggregation}"

    def worker(self, consumer: str) -> str:
        """STRING JSON: the report of a worker about itself. Expires some seconds after the last report."""
        return f"{self._stem}worker:{consumer}"


def index(tag: str) -> str:
    """SET of jobs that ever had a producer or an aggregation. Stays."""
    return f"{stem('logs', tag)}jobs"
