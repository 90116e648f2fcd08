"""Three masters on loopback, each with a third of the slots, for tests in which one of them dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex

from redis import Redis
from redis.crc import key_slot

from components.embedded import EmbeddedServer
from components.testing import _free_port, redis_at
from tests.support.waiting import eventually

_SLOTS = 16_384
_PASSWORD = token_hex()


class Node(EmbeddedServer):
    """A master of the cluster, with the slots from *first* to *last*."""

    def __init__(self, folder: Path, first: int, last: int, server: Path | None) -> None:
        self.port, self.first, self.last = _free_port(), first, last
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "requirepass": _PASSWORD,
            "cluster-enabled": "yes",
            "cluster-announce-ip": "127.0.0.1",
            # The others go on answering for their own slots when one is known to be dead.
            "cluster-require-full-coverage": "no",
            "cluster-node-timeout": "1000",
        }
        super().__init__(folder, server=server, appendonly=False, options=options)

    @property
    def url(self) -> str:
        return f"redis://:{_PASSWORD}@127.0.0.1:{self.port}"

    def has(self, key: str) -> bool:
        """Return True if *key* is on this node."""
        return self.first <= int(key_slot(key.encode())) <= self.last


@contextmanager
def three_masters(folder: Path, server: Path | None) -> Iterator[list[Node]]:
    """Point the project's CACHES alias to a cluster of three masters. They are killed at the end."""
    with ExitStack() as stack:
        bounds = [0, _SLOTS // 3, 2 * _SLOTS // 3, _SLOTS]
        nodes = [
            Node(folder / str(number), bounds[number], bounds[number + 1] - 1, server) for number in range(3)
        ]
        for node in nodes:
            stack.enter_context(node)
        clients = [stack.enter_context(Redis.from_url(node.url, driver_info=None)) for node in nodes]
        for node, client in zip(nodes, clients, strict=True):
            client.execute_command("CLUSTER ADDSLOTS", *range(node.first, node.last + 1))
            clients[0].execute_command("CLUSTER MEET", "127.0.0.1", node.port)
        for client in clients:
            assert eventually(lambda client=client: _is_whole(client), within=60)  # type: ignore[misc]
        urls = ",".join(node.url for node in nodes)
        with redis_at(urls, CLIENT_CLASS="components.cache.ClusterClient"):
            yield nodes


def _is_whole(client: Redis) -> bool:
    info = client.cluster("INFO")
    return info["cluster_state"] == "ok" and info["cluster_slots_ok"] == str(_SLOTS)
