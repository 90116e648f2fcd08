"""Helpers for tests of rate limits."""

from redis import Redis

from components.services.rates.keys import RateKeys


def let_pass(redis: Redis, seconds: float, name: str = "api", key: str = "") -> None:
    """Let time pass for a rate limit: all of its instants are earlier."""
    keys = RateKeys(name)
    for each in (f"{keys.calls}/{key}", f"{keys.places}/{key}"):
        for member, score in redis.zrange(each, 0, -1, withscores=True):
            redis.zadd(each, {member: score - seconds * 1e6})
