"""The keys of counters over time. The entity is a bucket, for counters by name."""

from components.kit.keyspace import Key, SharedKey, stem


class CounterKeys:
    """The keys of the bucket *tag*, named as in the scripts."""

    def __init__(self, tag: str) -> None:
        self._stem = stem("counters", tag)

    samples = SharedKey(
        'HASH per counter, stored precision and window of 120 slots (prefix of it: ends in ":", the name, "/", the '
        'precision, ":" and the window): slot -> count. Expires when its last slot is older than what is kept.'
    )
    histograms = SharedKey(
        "HASH like *samples*, of the values that were measured: slot -> each bucket and its count, as text. "
        "Expires when its last slot is older than what is kept of histograms."
    )
    #: To add.lua it is also the beginning of *families* and *family*.
    names = SharedKey(
        "ZSET name by the microsecond it was last seen. An entry goes with its last sample. Expires with the last "
        "entry."
    )
    families = SharedKey(
        "ZSET family, the part of a name before its colon, by the microsecond it was last seen. An entry goes with "
        "its last sample. Expires with the last entry.",
        part="names-families",
    )
    marks = SharedKey(
        "ZSET call and name of a mark, by its microsecond; in one bucket. An entry goes when the longest slices of "
        "its time do. Expires with the last entry."
    )


class FamilyKeys(CounterKeys):
    """The keys of a bucket, and of one family in it."""

    def __init__(self, tag: str, family: str) -> None:
        super().__init__(tag)
        self._end = f":{family}"

    family = Key(
        "ZSET like *names*, of the family. An entry goes with its last sample. Expires with the last entry.",
        part="names",
    )


class SourceKeys(CounterKeys):
    """The keys of a bucket, and of one source that sends counts to it."""

    def __init__(self, tag: str, source: str) -> None:
        super().__init__(tag)
        self._end = f":{source}"

    source = Key(
        'STRING number of the source\'s last call, and "refused" if an error ended it. Expires an hour after it.'
    )


class SumKeys:
    """The key of the sums *tag*, which are in one slot."""

    def __init__(self, tag: str) -> None:
        self._stem = stem("sums", tag)

    sums = SharedKey(
        "HASH event, bound and what it was of -> sum since the key was made. Expires 30 days after the last "
        "addition."
    )


class SumSourceKeys(SumKeys):
    """The keys of the sums *tag*, and of one source that adds to them."""

    def __init__(self, tag: str, source: str) -> None:
        super().__init__(tag)
        self._end = f":{source}"

    source = Key("STRING number of the source's last call. Expires an hour after it.")
