"""The keys of rate limits. The entity is a bucket of limits, so that one index lists all of a bucket."""

from __future__ import annotations

from components.kit.keyspace import Key, SharedKey, bucket, prefix_pattern, stem


class RateKeys:
    """The keys of the rate limit *name*, named as in the script. What it counts apart is the last part of a key."""

    def __init__(self, name: str) -> None:
        # No other name and last part are spelled alike.
        spelled = name.replace("%", "%25").replace("/", "%2F")
        self._stem, self._end = stem("rates", bucket(name)), f":{spelled}"

    @classmethod
    def of_bucket(cls, tag: str) -> RateKeys:
        """Return the keys that all limits of a bucket share."""
        keys = object.__new__(cls)
        keys._stem, keys._end = stem("rates", tag), ""
        return keys

    @staticmethod
    def instants() -> str:
        """Return the pattern of all keys that hold calls and places."""
        return f"{prefix_pattern()}:rates:*:[cp]*:*"

    calls = Key(
        "ZSET call of the last period by the microsecond in which it was counted (prefix of it: the script appends "
        "what is counted apart). A call goes when its period is over. Expires a period after the last."
    )
    places = Key(
        "ZSET waiting caller by the microsecond of its turn (prefix of it: as of the calls). A caller goes when it "
        "is counted, or a minute after its turn. Expires a minute after the last turn."
    )
    rates = SharedKey(
        "HASH name -> rate, as it was last declared, for a bucket. An entry goes with the name. Expires as they do."
    )
    made = SharedKey(
        "HASH name -> how many calls were counted, for a bucket. An entry goes with the name. Expires as they do."
    )
    names = SharedKey(
        "ZSET name by the day of its last call, for a bucket. An entry goes a month later. Expires a month after the "
        "last call in the bucket."
    )
