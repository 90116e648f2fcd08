"""
send_and_wait(): run a script, and find out how many replicas have its writes.

WAIT refers to the writes of its own connection, so script and WAIT go in one pipeline, to the node that has the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis import RedisCluster
from redis.exceptions import NoScriptError

from components.kit.at_once import answer
from components.kit.errors import REPLY_LOST
from components.kit.scripts import Call, Script

_PATIENCE = 1_000  # milliseconds for the replicas to acknowledge


async def send_and_wait(client: Any, script: Script, call: Call, *, replicas: int) -> tuple[Any, int]:
    """Run a script. Return its answer, and how many replicas have its writes."""
    keys, args = call
    if isinstance(client, RedisCluster):
        node = client.get_node_from_key(keys[0])  # type: ignore[no-untyped-call]
        client = client.get_redis_connection(node)
    try:
        return await _send(client, script, keys, args, replicas)
    except REPLY_LOST:
        return await _send(client, script, keys, args, replicas)


async def _send(
    client: Any, script: Script, keys: Sequence[str], args: Sequence[Any], replicas: int
) -> tuple[Any, int]:
    said, copies = await _pipeline(client, "EVALSHA", script.sha, keys, args, replicas)
    if isinstance(said, NoScriptError):
        said, copies = await _pipeline(client, "EVAL", script.source, keys, args, replicas)
    for answered in (said, copies):
        if isinstance(answered, Exception):
            raise answered
    return said, copies


async def _pipeline(
    client: Any, command: str, script: str, keys: Sequence[str], args: Sequence[Any], replicas: int
) -> list[Any]:
    batch = client.pipeline(transaction=False)
    batch.execute_command(command, script, len(keys), *keys, *args)
    batch.execute_command("WAIT", replicas, _PATIENCE)
    replies: list[Any] = await answer(batch.execute(raise_on_error=False))
    return replies
