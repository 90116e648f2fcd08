"""A Redis server that needs no installation and ends with the process that started it."""

from components.embedded.server import (
    EmbeddedServer,
    Watcher,
    find_server,
    is_running,
    require_running,
    servers,
    socket_path,
    socket_url,
)

__all__ = [
    "EmbeddedServer",
    "Watcher",
    "find_server",
    "is_running",
    "require_running",
    "servers",
    "socket_path",
    "socket_url",
]
