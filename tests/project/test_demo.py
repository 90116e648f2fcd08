"""`manage.py demo` as a newcomer runs it: in a checkout of its own, with nothing in the environment."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Timer
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import psutil
import pytest

from components.embedded import is_running
from tests.support.waiting import eventually, has_ended

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BOUND = 60  # seconds that a demo may take for whatever a test waits for


class Demo:
    """A running demo, and what it has said so far."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self.said = ""
        self.family: list[psutil.Process] = []

    def hear(self, words: str) -> None:
        """Listen until a line with these words comes."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.said += line
            if words in line:
                return
        pytest.fail(f"The demo never said {words!r}, but:\n{self.said}")

    def hear_out(self) -> int:
        """Listen until it ends; its exit code."""
        rest, _ = self.process.communicate()
        self.said += rest
        return self.process.returncode

    def member(self, word: str) -> psutil.Process:
        """The process of the demo with this word in its command line."""
        return next(process for process in reversed(self.family) if word in " ".join(process.cmdline()))

    def look(self) -> None:
        self.family = psutil.Process(self.process.pid).children(recursive=True)

    def ready(self) -> Demo:
        self.hear("Ctrl-C stops everything")
        self.look()
        return self

    def has_left_nothing(self) -> bool:
        return all(map(has_ended, self.family))

    def answers(self, path: str) -> bool:
        with suppress(OSError):
            return bool(self.page(path))
        return False

    def page(self, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{self.port}{path}") as page:
            said: str = page.read().decode()
        return said


Launch = Callable[..., Demo]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("components", "project", "templates"):
        shutil.copytree(ROOT / name, folder / name)  # with what has been compiled already
    shutil.copy(ROOT / "manage.py", folder)
    return folder


def manage(checkout: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=checkout,
        # A newcomer has no numba, which compiles for seconds.
        env={"PATH": os.environ["PATH"], "LOG_KERNEL": "naive", **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=heed_signals,
    )


@pytest.fixture
def launch(checkout: Path) -> Iterator[Launch]:
    with ExitStack() as stack:

        def launch(*options: str) -> Demo:
            port = free_port()
            process = manage(checkout, "demo", "--port", str(port), *options)
            stack.enter_context(process)
            stack.callback(process.kill)
            watchdog = Timer(10 * BOUND, process.kill)
            watchdog.start()
            stack.callback(watchdog.cancel)
            return Demo(process, port)

        yield launch


def heed_signals() -> None:
    """Whoever runs the tests with nohup lets their processes ignore this."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def kill_a_worker_and_redis(demo: Demo) -> None:
    """Press these buttons of the tour; the site goes on."""
    site = f"http://127.0.0.1:{demo.port}"
    browser = build_opener(HTTPCookieProcessor())

    def press(name: str) -> str:
        """Press a button of the tour, and return the page that says what it did."""
        with browser.open(f"{site}/flash/") as page:  # which works without Redis, too
            token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page.read().decode())
        assert token
        form = urlencode({"csrfmiddlewaretoken": token[1], "next": "/flash/"}).encode()
        with browser.open(f"{site}/tour/shows/{name}/", form) as page:
            said: str = page.read().decode()
        return said

    killed = list[str]()

    def kill() -> bool:
        """Press until one of the crew, who may still be starting, has begun to work."""
        killed.extend(
            re.findall(r"The worker with process (\d+) was killed while it ran tasks", press("worker"))
        )
        return bool(killed)

    assert eventually(kill, within=BOUND, pause=1)
    demo.hear(f"Process {killed[0]} of worker")  # its parent says that it has ended, and starts another
    assert "Redis was killed." in press("redis")
    demo.hear("Redis has ended")
    demo.hear("Redis is back")


def test_is_where_it_says_on_this_machine_only_once_in_a_folder_and_survives_the_tour_until_a_signal(
    launch: Launch, checkout: Path
) -> None:
    demo = launch("--no-log", "--redis-pause", "0.5").ready()

    assert f"http://127.0.0.1:{demo.port}/" in demo.said
    assert "log in as joe, jack, jill; password demo" in demo.said
    assert demo.page("/")
    listening = [
        connection.laddr.ip
        for process in demo.family
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"]
    second = launch()
    assert second.hear_out() == 2
    assert f"process {demo.process.pid} started it" in second.said

    kill_a_worker_and_redis(demo)
    demo.look()
    os.killpg(demo.process.pid, signal.SIGTERM)

    assert demo.hear_out() == 0
    assert "Its data stay in var/" in demo.said
    assert "Traceback" not in demo.said
    assert demo.has_left_nothing()
    assert not is_running(checkout / "var" / "redis")


def test_an_early_ctrl_c_stops_it_as_well(launch: Launch) -> None:
    demo = launch()
    demo.hear(" has started.")
    demo.look()
    demo.process.send_signal(signal.SIGINT)

    assert demo.hear_out() == 0
    assert demo.has_left_nothing()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_leaves_nothing_behind_when_nobody_listens_any_more(launch: Launch, number: signal.Signals) -> None:
    demo = launch("--no-log").ready()
    assert demo.process.stdout
    demo.process.stdout.close()
    demo.process.send_signal(number)

    assert eventually(demo.has_left_nothing)


@pytest.mark.long
@pytest.mark.parametrize(("word", "name"), [("--concurrency", "worker"), ("uvicorn", "web"), ("runall", "")])
def test_a_process_that_is_killed_is_replaced_and_a_demo_without_runall_ends(
    launch: Launch, word: str, name: str
) -> None:
    demo = launch("--no-log").ready()
    killed = demo.member(word)
    killed.kill()
    if not name:
        assert demo.hear_out() == 1
        assert "ended by itself" in demo.said
        assert eventually(demo.has_left_nothing, within=BOUND)  # its children notice
        return
    demo.hear(f"Process {killed.pid} of {name} was killed by SIGKILL; starting another")
    demo.hear(f"of {name} has started")
    if name == "web":
        assert eventually(lambda: demo.answers("/"), within=BOUND)


@pytest.mark.long
def test_counts_what_players_do_and_goes_on_when_redis_is_back(launch: Launch, checkout: Path) -> None:
    demo = launch("--redis-pause", "0.5").ready()

    def told(what: str) -> int:
        """A number on the page of where the game is played; 0 while the site is without Redis."""
        try:
            found = re.search(what, demo.page("/players/"))
        except HTTPError as error:
            if error.code != 503:
                raise
            return 0
        assert found
        return int(found[1].replace(",", ""))

    today, highest = "<strong>([0-9,]+)</strong> events in the game", "the highest is ([0-9,]+)"
    assert eventually(lambda: told(highest) > 10_000, within=BOUND, pause=0.2)  # on some day before
    demo.member("redis.sock").terminate()
    demo.hear("Redis has ended")
    demo.hear("Redis is back")
    assert is_running(checkout / "var" / "redis")
    assert eventually(lambda: told(today), within=BOUND, pause=0.2)
    before = told(today)
    assert eventually(lambda: told(today) != before, within=BOUND, pause=0.2)


def test_what_it_cannot_run_with_is_named_and_other_commands_say_what_starts_redis(checkout: Path) -> None:
    production = {"DEBUG": "0", "SECRET_KEY": "a", "ALLOWED_HOSTS": "*", "REDIS_URL": "redis://127.0.0.1"}
    without = "is not running. It runs as long as `manage.py runall` (of the demo: `make demo`)"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = [
            (manage(checkout, "demo", "--port", str(port)), f"make demo PORT={port + 1}"),
            (manage(checkout, "demo", "--port", str(free_port()), **production), "production"),
            (
                manage(checkout, "demo", "--port", str(free_port()), REDIS_URL="redis://127.0.0.1:1"),
                "REDIS_URL",
            ),
            (manage(checkout, "runworker", "--no-reload"), without),
            (manage(checkout, "pollqueue"), without),
        ]
        for process, words in refused:
            said, _ = process.communicate(timeout=BOUND)
            assert (process.returncode, words in said, "Traceback" in said) == (2, True, False), said
