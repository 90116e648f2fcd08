"""
Find the server and database of each cache in settings.CACHES, without asking any server.

cache.clear() of a Redis cache is FLUSHDB, so the database matters, not the alias.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from django.utils.module_loading import import_string

#: Names of this machine, all of which lead to the same server.
_LOOPBACK = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0"}
_PORT = 6379
#: The schemes that redis-py accepts.
_SCHEMES = ("redis", "rediss", "unix")
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
    # A cluster has one database, whatever the settings say.
    is_cluster = "cluster" in str(options.get("CLIENT_CLASS", "")).lower()
    pool = {**options, **options.get("CONNECTION_POOL_KWARGS", {})}
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
    """Yield a sentence for each mistake in an entry of CACHES that this app uses, without passwords."""
    options = cache.get("OPTIONS", {})
    is_cluster = "cluster" in str(options.get("CLIENT_CLASS", "")).lower()
    factory = str(options.get("CONNECTION_FACTORY", "components."))
    # A factory of the project's own may know other URLs.
    given = urls(cache) if factory.startswith(("components.", "django_redis.")) else []
    if not urls(cache):
        yield "LOCATION names no server. Give it a URL, such as redis://localhost:6379/0."
    for url in given:
        if (parts := _split(url)) is None:
            yield (
                "LOCATION is not the URL of a Redis server: its host cannot be read. Put an IPv6 address in "
                "brackets, as in redis://[::1]:6379/0."
            )
            continue
        if parts.scheme not in _SCHEMES:
            begins = f"begins with {parts.scheme}://" if "://" in url and parts.scheme else "has no scheme"
            yield (
                f"LOCATION is not the URL of a Redis server: it {begins}, and must begin with redis://, rediss:// or unix://."
            )
            continue
        try:
            parts.port  # noqa: B018  (it raises)
        except ValueError as error:
            yield f"LOCATION is not the URL of a Redis server: {error}."
        query = parse_qs(parts.query)
        database = query.get("db", ["" if parts.scheme == "unix" else parts.path.strip("/")])[0]
        if database and not database.isdigit():
            yield f"LOCATION names the database {database!r}; it must be a number, such as 0."
        elif is_cluster and database.strip("0"):
            yield f"LOCATION names the database {database}; a cluster has only 0. Leave the number out."
        if "decode_responses" in query:  # redis-py takes any word for "yes"
            yield _DECODES
    if options.get("CONNECTION_POOL_KWARGS", {}).get("decode_responses"):
        yield _DECODES


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
