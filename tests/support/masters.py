"""
A cluster of three masters on loopback, for tests in which one dies or hangs while the others answer for their own
slots.
"""

import gc
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from redis import Redis
from redis.cluster import RedisCluster
from redis.connection import Connection
from redis.crc import key_slot

from components.embedded import EmbeddedServer
from components.testing import _free_port, redis_at
from tests.support.waiting import eventually

_SLOTS = 16_384
NUMBER = 3


class Master(EmbeddedServer):
    """The one of them with this number."""

    def __init__(self, folder: Path, program: Path | None, number: int) -> None:
        self.port, self.number = _free_port(), number
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "protected-mode": "no",
            "cluster-enabled": "yes",
            "cluster-announce-ip": "127.0.0.1",
            "cluster-require-full-coverage": "no",
            "cluster-node-timeout": "60000",  # nobody declares a dead one dead: the clients have to see it
        }
        super().__init__(folder, server=program, appendonly=False, options=options)

    @property
    def tcp(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def name(self) -> str:
        """The name that redis-py gives to the node."""
        return f"127.0.0.1:{self.port}"

    def has(self, key: str) -> bool:
        return int(key_slot(key.encode()) * NUMBER // _SLOTS) == self.number

    def hang(self) -> None:
        assert self.pid
        os.kill(self.pid, signal.SIGSTOP)


class Masters(list[Master]):
    """All of them, by their slots."""

    @property
    def urls(self) -> str:
        """A LOCATION that works whichever master is dead."""
        return ",".join(each.tcp for each in self)

    def of(self, key: str) -> Master:
        return next(each for each in self if each.has(key))


@contextmanager
def moving(nodes: Masters, key: str) -> Iterator[Callable[[], None]]:
    """
    Let the slot of *key* move to another master, without its keys. What is yielded moves them and ends it; in the
    end all is as before.
    """
    slot, begun = key_slot(key.encode()), nodes.of(key)
    with (
        Redis(port=begun.port) as source,
        Redis(port=nodes[(begun.number + 1) % NUMBER].port) as target,
    ):
        ids = {each: each.execute_command("CLUSTER MYID") for each in (source, target)}

        def move(start: Redis, end: Redis) -> None:
            keys = start.execute_command("CLUSTER GETKEYSINSLOT", slot, 1_000)
            port = end.connection_pool.connection_kwargs["port"]
            if keys:
                start.execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5_000, "KEYS", *keys)
            for each in (end, start):
                each.execute_command("CLUSTER SETSLOT", slot, "NODE", ids[end])

        target.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
        source.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
        try:
            yield lambda: move(source, target)
        finally:
            for each in (target, source):
                each.execute_command("CLUSTER SETSLOT", slot, "STABLE")
            if target.execute_command("CLUSTER COUNTKEYSINSLOT", slot):
                target.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[source])
                source.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[target])
            move(target, source)


@contextmanager
def masters(folder: Path, program: Path | None) -> Iterator[Masters]:
    """Yield a cluster whose slots are all served."""
    with ExitStack() as stack:
        made = Masters(Master(folder / f"node-{number}", program, number) for number in range(NUMBER))
        for each in made:
            each.start()
            stack.callback(each.kill)
        with ExitStack() as clients:
            nodes = [clients.enter_context(Redis(port=each.port)) for each in made]
            for number, node in enumerate(nodes):
                first, last = (-(-part * _SLOTS // NUMBER) for part in (number, number + 1))
                node.execute_command("CLUSTER ADDSLOTS", *range(first, last))
                node.execute_command("CLUSTER MEET", "127.0.0.1", made[0].port)
            assert eventually(lambda: all(map(_knows_all, nodes)))
        yield made


@contextmanager
def three_masters(folder: Path, program: Path | None) -> Iterator[Masters]:
    """Point the project's CACHES alias to a cluster, of which a test may lose masters."""
    with masters(folder, program) as made:
        with redis_at(made.urls, CLIENT_CLASS="components.cache.ClusterClient"):
            yield made
        forget_clients()


def _knows_all(node: Redis) -> bool:
    info = node.cluster("INFO")
    known = len(node.execute_command("CLUSTER SLOTS"))
    return info["cluster_state"] == "ok" and info["cluster_slots_assigned"] == str(_SLOTS) and known == NUMBER


def forget_clients() -> None:
    """Forget the clients of clusters, so that the next one is new, as in a new process."""
    from components.cache import ClusterClient

    for client in ClusterClient._clusters.values():
        assert isinstance(client, RedisCluster)
        client.close()
    ClusterClient._clusters.clear()
    # redis-py forgets connections to nodes that it replaces. What still refers to one would leave it to a later test.
    for each in gc.get_objects():
        if issubclass(type(each), Connection):
            each.disconnect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
