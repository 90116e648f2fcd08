"""What is wrong with the server that the settings name, and with the way to it."""

import re
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning
from redis import RedisCluster
from redis.exceptions import RedisError

from components.conf import conf
from components.embedded import is_running
from components.exceptions import LockNotAcquired
from components.kit.client import get_client
from components.kit.errors import REDIS_FAILED, redis_errors
from components.kit.readings import gather
from components.kit.release import check_format
from components.overview.nodes import Node, nodes, read_nodes
from components.reports import finding_of
from components.servers import described, inspect_server
from components.services.locks import lock

_PINGS = 20
_SLOW = 0.01  # seconds: a round trip within a data centre takes less than one millisecond
_MOST_SLOTS = 10  # that are named
_WRONG_BY = 2.0  # seconds by which clocks may differ

#: What to do about words in the errors of redis-py and of the server, as kit/errors.py passes them on.
_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        r"Name or service not known|name resolution|nodename nor servname|No address associated",
        "No host of that name is known here: correct it in {location}, or in DNS.",
    ),
    (
        r"certificate verify failed",
        "Name a file with the certificate of who signed the server's, as in {location} = "
        "rediss://host:6380/0?ssl_ca_certs=/path/to/ca.pem, and the host by a name that the certificate has.",
    ),
    (
        r"Error 2 connecting to (?!/|unix)",
        "A file of the options ssl_ca_certs, ssl_certfile and ssl_keyfile is not there: correct its path.",
    ),
    (
        r"No master found",
        "Correct the hosts and ports in SENTINELS, or the name of the service in {location}: "
        "`redis-cli -h HOST -p PORT sentinel masters` lists those that a Sentinel knows.",
    ),
    (r"TLS: begin its URL", "Correct {location}."),
    (r"maxclients", "Raise maxclients of the server, or let fewer processes and threads connect."),
    (r"HELLO", "Add ?protocol=2 to the URLs of {location}, or let its user and its server know HELLO."),
    (
        r"refused|No such file|Connect call failed",
        "No server listens there: start it, or correct host and port in {location}.",
    ),
    (
        r"user name or password",
        "Put both into {location}, as in redis://user:password@host:6379/1, with special characters percent-encoded. "
        "A server with only a password knows the user as `default`.",
    ),
    (
        r"SSL|certificate|Connection closed by server|Connection reset|Redis protocol",
        "Perhaps it is the port of another service, or one end expects TLS: a URL of {location} begins with "
        "rediss:// if the port speaks TLS, else with redis://.",
    ),
    (r"Timeout|timed out", "It hangs, or a firewall drops what is sent: try `redis-cli -u URL ping` from here."),
    (r"cluster mode is not enabled|cluster support disabled", "Remove CLIENT_CLASS: the server is not a cluster."),
    (r"read-only replica", "Correct {location}, or make it the service name of Sentinels."),
    (r"memory is full", "Raise maxmemory, or find out with `manage.py queues` what has piled up."),
    (r"could not save its data", "Make room on its disk, and look into its log."),
    (r"loading its data", "Wait until it has loaded its data."),
    (
        r"Install Redis 6\.2 or newer|needs 6\.2 or newer",
        "Install a newer server; README lists the releases with all fixes.",
    ),
    (r"has the format", "Run the release that has stored it, or empty that database."),
    (r"names a database", "Correct the number at the end of {location}, or `databases` of the server."),
    (
        r"may not use a command",
        "As an administrator of Redis, run what `manage.py acl --commands` prints: users with the rights that this "
        "app needs.",
    ),
    (r"MOVED|CROSSSLOT", 'Set "CLIENT_CLASS": "components.cache.ClusterClient" among its OPTIONS.'),
)  # fmt: skip


def unusable(error: Exception) -> CheckMessage:
    """Return the finding for an error that any use of Redis raises."""
    said = str(error)
    location = f'CACHES[{conf().cache!r}]["LOCATION"]'
    remedies = [remedy for words, remedy in _REMEDIES if re.search(words, said, re.IGNORECASE)]
    remedy = remedies[0] if remedies else "Look into the log of the server that {location} names."
    if (folder := conf().embedded) and not is_running(folder):
        remedy = "Start `manage.py runall`: the embedded server runs as long as that does."
    return Error(said, hint=remedy.format(location=location), id="components.E101")


def examine_server() -> Iterator[CheckMessage]:
    """Yield what is wrong with each node. Raises RedisUnavailable if the server cannot be used at all."""
    inspect_server()
    client: Any = get_client()
    gathered = gather({"redis": read_nodes()})
    found = nodes(gathered.found.get("redis", {}), gathered.took)
    if not any(node.info for node in found):
        yield Warning(
            f"The user of CACHES[{conf().cache!r}] may not use INFO, so memory, persistence and eviction were not "
            "looked at.",
            hint="Run the doctor as a user who may: ACL SETUSER … +info.",
            id="components.W102",
        )
    for node in found:
        if node.info:
            where = f"The server of CACHES[{conf().cache!r}], {node.name},"
            yield Info(f"{where} is {described(node.info)}.", id="components.I100")
    findings = [finding_of(line, "overview") for node in found for line in node.lines]
    yield from findings
    slots, moving = [*_slots(client, found)], [*_moving(client)]
    yield from (*slots, *moving)
    yield from _sentinels(client)
    yield from _times(client)
    if not moving and not any(finding.is_serious() for finding in [*findings, *slots]):
        check_format()
        # A user or a server that cannot write raises RedisUnavailable.
        with suppress(LockNotAcquired), lock("doctor", timeout=10, blocking_timeout=1):
            pass


def _sentinels(client: Any) -> Iterator[CheckMessage]:
    manager = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    for each in manager.sentinels if manager else ():
        try:
            each.sentinel_masters()
        except RedisError as error:
            yield Warning(
                f"SENTINELS of CACHES[{conf().cache!r}] has {each!r}, which does not answer as a Sentinel: {error}",
                hint="Start it, or correct its host and port.",
                id="components.W128",
            )


def _slots(client: Any, found: Iterable[Node]) -> Iterator[CheckMessage]:
    where = f"The cluster of CACHES[{conf().cache!r}]"
    if not isinstance(client, RedisCluster):
        if any(node.info.get("cluster_enabled") for node in found):
            yield Error(
                f"{where} is reached by a client for a single server, which can use only the keys of one node.",
                hint='Set "CLIENT_CLASS": "components.cache.ClusterClient" among its OPTIONS.',
                id="components.E108",
            )
        return
    state: Mapping[str, Any] = client.cluster_info(target_nodes=client.get_primaries()[0])  # type: ignore[no-untyped-call]
    covered = int(state.get("cluster_slots_ok", 0))
    if state.get("cluster_state") != "ok" or covered < 16_384:
        yield Error(
            f"{where} is not whole: its state is {state.get('cluster_state')}, and {covered:,} of 16,384 slots are "
            "served.",
            hint="Start the node that is down, or give its slots to others: `redis-cli --cluster fix HOST:PORT`.",
            id="components.E107",
        )


def _moving(client: Any) -> Iterator[CheckMessage]:
    """Yield a finding for each two nodes between which slots move, as each of the two says of itself."""
    slots: dict[tuple[str, str], set[int]] = {}
    for node in client.get_primaries() if isinstance(client, RedisCluster) else ():  # type: ignore[no-untyped-call]
        with suppress(*REDIS_FAILED):  # one that is away is a finding of its own
            known: Mapping[str, Any] = client.get_redis_connection(node).cluster("nodes")
            names = {info["node_id"]: name for name, info in known.items()}
            [(own, info)] = [(name, info) for name, info in known.items() if "myself" in info["flags"]]
            for each in info["migrations"]:
                other = names.get(each["node_id"], each["node_id"])
                pair = (own, other) if each["state"] == "migrating" else (other, own)
                slots.setdefault(pair, set()).add(int(each["slot"]))
    for (source, target), found in slots.items():
        shown = ", ".join(map(str, sorted(found)[:_MOST_SLOTS]))
        more = f" and {len(found) - _MOST_SLOTS:,} more" if len(found) > _MOST_SLOTS else ""
        yield Warning(
            f"The cluster of CACHES[{conf().cache!r}] moves slots from {source} to {target}: {shown}{more}. Calls "
            "that need several keys of such a slot wait until it is on one node.",
            hint=f"If nobody moves it any more, end that with `redis-cli --cluster fix {source}`.",
            id="components.W129",
        )


def _times(client: Any) -> Iterator[CheckMessage]:
    where, took, ahead = f"The server of CACHES[{conf().cache!r}]", list[float](), 0.0
    with redis_errors():
        for _ in range(_PINGS):
            began = time.time()
            seconds, micros = client.time()
            ended = time.time()
            took.append(ended - began)
            ahead = int(seconds) + int(micros) / 1e6 - (began + ended) / 2
    if (usual := statistics.median(took)) > _SLOW:
        yield Warning(
            f"{where} takes {usual * 1e3:.0f} ms for a round trip, and every enqueue, lock and row waits for one or "
            "more.",
            hint="Run it in the same network as this site, and look for slow commands with SLOWLOG.",
            id="components.W107",
        )
    options = settings.CACHES[conf().cache].get("OPTIONS", {})
    patience = client.get_connection_kwargs().get("socket_timeout") or options.get("SOCKET_TIMEOUT")
    if patience and max(took) > patience / 2:
        yield Warning(
            f"{where} took up to {max(took):.1f} s to answer, and the socket timeout is {patience:g} s.",
            hint="Raise SOCKET_TIMEOUT, or find out with SLOWLOG and LATENCY what keeps it busy.",
            id="components.W107",
        )
    if abs(ahead) > _WRONG_BY:
        yield Warning(
            f"The clock of the server of CACHES[{conf().cache!r}] is {abs(ahead):.0f} s "
            f"{'ahead of' if ahead > 0 else 'behind'} that of this machine, so tasks run too "
            f"{'early' if ahead > 0 else 'late'} and times in the admin are wrong.",
            hint="Set both by NTP.",
            id="components.W108",
        )
