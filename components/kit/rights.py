"""
What each user of Redis may do: the commands and keys of the processes that are this user.

The lists are written by hand. Redis checks the commands and keys of a script by the rights of its caller, so a list
that lacks one fails at the first call: the tests of each service run as the user whose processes run it. What rights
cannot tell apart: who may enqueue a task may also delete it.
"""

from hashlib import sha256

from django.conf import settings

from components.kit.keyspace import escaped, prefix_pattern
from components.locations import is_redis

#: The second words of all keys of this app.
KEYS = (
    "books", "chats", "contacts", "counters", "fences", "format", "geo", "inboxes", "locks", "logs", "mailboxes",
    "queues", "rates", "rows", "semaphores", "sums",
)  # fmt: skip
#: What follows the prefix in the names of channels.
_CHANNELS = "news:*"
_ALL = """
    blpop decrby del eval evalsha exists expire expireat get getrange hdel hexists hget hgetall hincrby hlen
    hmget hscan hset hsetnx hstrlen incrby llen memory|usage mget persist pexpire pexpireat ping pttl
    publish rename rpush sadd script|load set setrange sismember smembers smismember srandmember srem subscribe time
    ttl unlink unsubscribe wait xadd xdel xlen xrange xread xrevrange xtrim zadd zcard zcount zlexcount zmscore
    zrandmember zrange zrangebyscore zrank zrem zremrangebyrank zremrangebyscore zrevrange zrevrangebyscore zrevrank
    zscan zscore
"""
#: What also who claims tasks and chunks of logs needs, or lists what there is.
_MORE = """
    hvals incr lindex lrange scard strlen type xack xclaim xgroup xinfo xpending xreadgroup zpopmin zrangebylex
"""
#: The commands of each user: pages and the API; workers, poller and daemons; a site that serves the Django admin.
USERS: dict[str, list[str]] = {
    "web": _ALL.split(),
    "worker": sorted(f"{_ALL} {_MORE} scan".split()),
    "admin": sorted(f"{_ALL} {_MORE}".split()),
}
#: What connections need, what the doctor needs besides, and nodes of a cluster. Of CLIENT nobody needs anything: it
#: would let them track every key.
_CONNECTION = "+auth +hello +ping +select +command +info +multi +discard"
_CLUSTER = "+cluster|slots +cluster|nodes +cluster|info +readonly +asking"


def rights(user: str, *, cluster: bool = False) -> list[str]:
    """Return the rules of *user*, as ACL SETUSER takes them. Nothing is sent to Redis."""
    if user not in USERS:  # an operator
        return ["~*", "&*", "+@all"]
    prefix, caches = prefix_pattern(), filter(None, _prefixes_of_caches().values())
    keys = [f"~{prefix}:{word}:{{*" for word in KEYS] + [f"~{escaped(each)}:*" for each in sorted({*caches})]
    connection = [*_CONNECTION.split(), *(_CLUSTER.split() if cluster else ())]
    commands = [f"+{name}" for name in USERS[user]]
    return ["resetkeys", *keys, "resetchannels", f"&{prefix}:{_CHANNELS}", "-@all", *connection, *commands]


def without_prefix() -> list[str]:
    """Return the aliases of CACHES whose keys begin like those of other sites, since they have no KEY_PREFIX."""
    return [alias for alias, prefix in _prefixes_of_caches().items() if not prefix]


def _prefixes_of_caches() -> dict[str, str]:
    caches = settings.CACHES.items()
    return {alias: str(cache.get("KEY_PREFIX", "")) for alias, cache in caches if is_redis(cache)}


def line(user: str, password: str, *, cluster: bool = False) -> str:
    """Return the line of an ACL file for *user*; it holds only the SHA-256 of the password."""
    secret = sha256(password.encode()).hexdigest()
    return " ".join(["user", user, "reset", "on", f"#{secret}", *rights(user, cluster=cluster)])
