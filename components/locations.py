"""
Find the server and database of each cache in settings.CACHES, without asking any server.

cache.clear() of a Redis cache is FLUSHDB, so the database matters, not the alias.
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from django.utils.module_loading import import_string
from redis import RedisCluster

#: Names of this machine, all of which lead to the same server.
_LOOPBACK = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0"}
_PORT = 6379
#: The schemes that redis-py accepts.
_SCHEMES = ("redis", "rediss", "unix")
#: What django-redis takes if OPTIONS name no other.
_FACTORY = "django_redis.pool.ConnectionFactory"
_ENCODE = (
    "In a user name or a password, percent-encode what is no letter or digit, such as # as %23 and / as %2F."
)
_DECODES = (
    "decode_responses is set, and this app reads bytes. Remove it, or give this app an alias without it."
)


class Place(NamedTuple):
    """A database of a server; of a cluster, a database of a node."""

    server: str
    database: str


def is_redis(cache: Mapping[str, Any]) -> bool:
    """Return True if an entry of CACHES is in Redis or Valkey, judged by the name of its backend."""
    backend = str(cache.get("BACKEND", "")).lower()
    return "redis" in backend or "valkey" in backend


def client_class(cache: Mapping[str, Any]) -> type | None:
    """Return the CLIENT_CLASS of an entry of CACHES; None if there is none or it cannot be imported."""
    path = cache.get("OPTIONS", {}).get("CLIENT_CLASS")
    try:
        found = import_string(path) if path else None
    except ImportError:
        return None
    return found if isinstance(found, type) else None


def urls(cache: Mapping[str, Any]) -> list[str]:
    """Return the URLs in the LOCATION of an entry of CACHES."""
    location = cache.get("LOCATION") or ""
    given = location if isinstance(location, Sequence) and not isinstance(location, str) else [location]
    return [part.strip() for each in given for part in str(each).split(",") if part.strip()]


def places(cache: Mapping[str, Any]) -> set[Place]:
    """Return the databases that an entry of CACHES uses: one for each URL of its LOCATION."""
    options = cache.get("OPTIONS", {})
    is_cluster = _is_cluster(cache)  # it has one database, whatever the settings say
    given = options.get("CONNECTION_POOL_KWARGS")
    pool = {**options, **given} if isinstance(given, Mapping) else options  # mistakes() reports others
    found = set[Place]()
    for url in urls(cache):
        if (parts := _split(url)) is None:
            continue  # mistakes() reports this
        named = parse_qs(parts.query).get("db", [""])[0]
        if parts.scheme == "unix":
            server = posixpath.normpath(unquote(parts.path))
        else:
            server = _server(parts.netloc, options.get("SENTINELS"))
            named = named or parts.path.strip("/")
        database = "0" if is_cluster else str(named or pool.get("db") or 0)
        found.add(Place(server, database))
    return found


def _split(url: str) -> SplitResult | None:
    """Return the parts of *url*; None if its host is invalid, such as one with a bracket that is not closed."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _server(netloc: str, sentinels: Any) -> str:
    host, port = _address(netloc)
    if not sentinels:
        return f"{host}:{port or _PORT}"
    known = sorted(f"{_one_name(str(each[0]))}:{each[1]}" for each in sentinels)
    return f"{host} of {' '.join(known)}"


def _address(netloc: str) -> tuple[str, str]:
    host, _, port = netloc.rpartition("@")[2].rpartition(":")
    if not port.isdigit():  # a name alone, or an IPv6 address in brackets without a port
        host, port = netloc.rpartition("@")[2], ""
    return _one_name(host.strip("[]").lower()), port


def _one_name(host: str) -> str:
    return "localhost" if host in _LOOPBACK else host


def mistakes(cache: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each mistake in an entry of CACHES; none quotes a URL, which may have a password."""
    if not (given := urls(cache)):
        yield "LOCATION names no server. Give it a URL, such as redis://localhost:6379/0."
    wrong: list[str] = []
    if _knows_our_urls(cache):
        found = (_wrong_url(url, _is_cluster(cache)) for url in given)
        wrong = list(dict.fromkeys(sentence for sentence in found if sentence))
    if not wrong and given:
        try:
            if connection_options(cache).get("decode_responses"):
                wrong.append(_DECODES)
        except Exception as error:  # noqa: BLE001  (whatever it is, the settings cannot be used)
            wrong.append(_refused(error, given))
    yield from wrong


def _is_cluster(cache: Mapping[str, Any]) -> bool:
    return "cluster" in str(cache.get("OPTIONS", {}).get("CLIENT_CLASS", "")).lower()


def _knows_our_urls(cache: Mapping[str, Any]) -> bool:
    """Return False for a factory of the project's own, which may know other URLs and options."""
    factory = str(cache.get("OPTIONS", {}).get("CONNECTION_FACTORY") or _FACTORY)
    return factory.startswith(("components.", "django_redis."))


def _wrong_url(url: str, is_cluster: bool) -> str | None:
    parts = _split(url)
    if parts is None or parts.scheme not in _SCHEMES or "://" not in url:
        return (
            "LOCATION is not the URL of a Redis server: it must begin with redis://, rediss:// or unix://, and an "
            f"IPv6 address be in brackets. {_ENCODE}"
        )
    try:
        is_read = parts.port is None or parts.port > 0
    except ValueError:
        is_read = False
    is_path = parts.scheme == "unix"
    database = parse_qs(parts.query).get("db", ["" if is_path else parts.path.strip("/")])[0]
    if (
        not is_read
        or parts.fragment
        or not all("=" in each for each in parts.query.split("&") if each)
        or (is_path and parts.netloc and "@" in parts.path)
        or (database and not database.isdecimal())
    ):
        return (
            "LOCATION is not the URL of a Redis server: write it like redis://user:password@host:6379/0?name=value, "
            f"with numbers as port and database. {_ENCODE}"
        )
    if is_cluster and database.strip("0"):
        return (
            f"LOCATION names the database {database}; redis-py's client of a cluster has only 0, also where Valkey "
            "has more. Leave the number out."
        )
    return None


def connection_options(cache: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the options of redis-py's connections for an entry of CACHES: those of its URLs, and its OPTIONS.

    A client and a connection are made with them, and not opened. Raises whatever is raised if they cannot be used.
    """
    options = dict(cache.get("OPTIONS", {}))
    for name in ("CLIENT_CLASS", "COMPRESSOR", "CONNECTION_FACTORY", "SERIALIZER"):
        import_string(options.get(name) or _FACTORY)
    if not _knows_our_urls(cache):
        return dict(options.get("CONNECTION_POOL_KWARGS", {}))
    factory = import_string(options.get("CONNECTION_FACTORY") or _FACTORY)(options)
    if _is_cluster(cache):  # its client has options of its own
        own = signature(RedisCluster).parameters.keys() - {"url", "max_connections"}
        given = factory.pool_cls_kwargs.items()
        factory.pool_cls_kwargs = {name: value for name, value in given if name not in own}
    found: dict[str, Any] = {}
    for url in urls(cache):
        pool = factory.get_connection_pool(factory.make_connection_params(url))
        pool.connection_class(**pool.connection_kwargs)
        if not _is_cluster(cache):
            factory.redis_client_cls(connection_pool=pool, **factory.redis_client_cls_kwargs)
        found |= pool.connection_kwargs
    for name in ("socket_timeout", "socket_connect_timeout", "health_check_interval"):
        if not isinstance(value := found.get(name), int | float | None):
            raise TypeError(f"{name} is {value!r}; it must be a number of seconds")
    return found


def _refused(error: Exception, given: Sequence[str]) -> str:
    if any("@" in url.partition("?")[2] for url in given):
        return f"LOCATION has options that redis-py does not know. {_ENCODE}"
    tls = " Options that begin with ssl need a LOCATION with rediss://." if "ssl" in str(error) else ""
    return f"redis-py refuses the options in LOCATION or OPTIONS: {str(error).rstrip('.')}.{tls}"


def servers(cache: Mapping[str, Any]) -> set[str]:
    """Return the servers that an entry of CACHES uses, whatever their databases."""
    return {place.server for place in places(cache)}


def with_database(url: str, number: int) -> str:
    """Return the URL *url* of a server with another database."""
    address, _, query = url.partition("?")
    others = [each for each in query.split("&") if each and not each.startswith("db=")]
    if address.startswith("unix:"):
        others.append(f"db={number}")
    else:
        scheme, _, rest = address.partition("://")
        address = f"{scheme}://{rest.partition('/')[0]}/{number}"
    return "?".join([address, *filter(None, ["&".join(others)])])
