"""The demo as in production: gunicorn, uvicorn and granian behind nginx, with TLS; and what docs/capacity.md says."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from string import Template

import pytest
import requests
from django.urls import reverse
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.autocomplete import AddressBook
from components.services.chat import Chat
from components.services.counters import Counter, flush, measure
from components.services.locks import lock
from components.services.mailboxes import Mailbox
from components.services.rows import RowCache
from tests.deploy.test_files import make_certificate
from tests.project.test_demo import free_port
from tests.support.chats import FREE
from tests.support.programs import NO_NGINX, find_nginx
from tests.support.queues import push_many
from tests.support.restricted import add_user, as_user
from tests.support.rows import SHAPE
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SERVERS = {
    "gunicorn": "-m gunicorn project.wsgi --bind 127.0.0.1:{port} --worker-class gthread --threads 8 "
    "--graceful-timeout 5 --no-control-socket",
    "uvicorn": "-m uvicorn project.asgi:application --host 127.0.0.1 --port {port} --lifespan off "
    "--timeout-graceful-shutdown 3 --proxy-headers",
    "granian": "-m granian --interface asginl project.asgi:application --host 127.0.0.1 --port {port} "
    "--workers-kill-timeout 5",
}
BOUND = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with its static files and a database with the demo's data."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("components", "project", "templates"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "manage.py", folder)
    make_certificate(folder / "site.crt", folder / "site.key")
    return folder


@pytest.fixture(scope="module")
def environment(site: Path, redis_server: EmbeddedServer) -> dict[str, str]:
    environment = {
        "PATH": os.environ["PATH"],
        "DEBUG": "0",
        "SECRET_KEY": "only-for-tests" * 5,
        "ALLOWED_HOSTS": "localhost",
        "BEHIND_TLS_PROXY": "1",
        "METRICS_TOKEN": "for-tests",
        "REDIS_URL": redis_server.url,
        "DATABASE_URL": f"sqlite:///{site}/site.sqlite3",
    }
    for command in (["collectstatic", "--no-input"], ["migrate"], ["loaddemo", "--force"]):
        subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=site,
            env=environment,
            check=True,
            capture_output=True,
        )
    with Redis.from_url(redis_server.url) as client:
        add_user(client, "admin")
    return {**environment, "REDIS_URL": as_user(redis_server.url, "admin")}


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def run(stack: ExitStack, command: list[str], log: Path, **options: object) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, **options
        )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process


def nginx(stack: ExitStack, site: Path, folder: Path, port: int) -> str:
    """Start nginx with the configuration of deploy/; the address of the site."""
    program = find_nginx() or pytest.skip(NO_NGINX)
    https, http = free_port(), free_port()
    text = (ROOT / "deploy" / "nginx" / "default.conf.template").read_text()
    server = Template(text).safe_substitute(
        SITE=f"127.0.0.1:{port}", SERVER_NAME="localhost", HTTP=f"127.0.0.1:{http}", HTTPS=f"127.0.0.1:{https}",
        STATIC=f"{site}/staticfiles", CERTIFICATE=f"{site}/site.crt", CERTIFICATE_KEY=f"{site}/site.key",
    )  # fmt: skip
    paths = "".join(f"{each}_temp_path {folder}/{each};" for each in PATHS)
    user = f"user {os.environ.get('USER', 'root')};" if os.getuid() == 0 else ""
    types = "types { text/css css; text/javascript js; image/svg+xml svg; }"
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/nginx.pid; error_log stderr; events {{}}\n"
        f"http {{ {types} access_log off; {paths}\n{server}\n}}\n"
    )
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
    run(stack, command, folder / "nginx.log")
    assert eventually(lambda: is_open(https), within=BOUND), (folder / "nginx.log").read_text()
    moved = requests.get(f"http://127.0.0.1:{http}/", headers={"Host": "localhost"}, allow_redirects=False)
    assert (moved.status_code, moved.headers["Location"]) == (301, "https://localhost/")
    return f"https://localhost:{https}"


#: What probes of deploy/ and Prometheus send.
PROBE = {"Host": "localhost", "X-Forwarded-Proto": "https", "Authorization": "Bearer for-tests"}
PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Visitor(requests.Session):
    """A browser that has logged in."""

    def __init__(self, address: str, certificate: Path, name: str) -> None:
        super().__init__()
        self.trust_env = False  # it names other certificates
        self.verify, self.address = str(certificate), address
        self.headers["Referer"] = f"{address}/"
        self.get(address + reverse("market:login"))
        data = {"username": name, "password": "demo", "csrfmiddlewaretoken": self.cookies["csrftoken"]}
        assert self.post(address + reverse("market:login"), data=data).status_code == 200
        self.headers["X-CSRFToken"] = self.cookies["csrftoken"]

    def ask(self, method: str, name: str, *args: str, **options: object) -> requests.Response:
        return self.request(method, self.address + reverse(f"components:{name}", args=args), **options)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "granian" else [pytest.mark.long]) for name in SERVERS]
)
def test_the_demo_and_its_chats_behind_nginx(
    started: ExitStack, site: Path, environment: dict[str, str], tmp_path: Path, name: str
) -> None:
    port = free_port()
    command = [sys.executable, *SERVERS[name].format(port=port).split()]
    server = run(started, command, tmp_path / "log", cwd=site, env=environment)
    assert eventually(lambda: is_open(port) or server.poll() is not None, within=BOUND)
    assert server.poll() is None, (tmp_path / "log").read_text()
    address = nginx(started, site, tmp_path, port)

    jack, joe = (Visitor(address, site / "site.crt", each) for each in ("jack", "joe"))
    page = jack.ask("GET", "chats")
    assert page.status_code == 200
    [style] = {each for each in page.text.split('"') if each.endswith(".css") and "/chat/chat." in each}
    static = jack.get(address + style)
    assert static.status_code == 200
    assert "immutable" in static.headers["Cache-Control"]
    assert static.headers["Content-Encoding"] == "gzip"

    found = joe.ask("GET", "api-sync", params={"timeout": 0}).json()
    ids = jack.ask("GET", "api-people", params={"name": "joe"}).json()
    [person] = ids["people"]
    made = jack.ask("POST", "api-chats", json={"members": [person["id"]], "text": "hello"})
    assert made.status_code == 201
    news = joe.ask("GET", "api-sync", params={"cursor": found["cursor"], "timeout": 10}).json()
    assert news["chats"][0]["messages"][-1]["text"] == "hello"

    assert jack.post(address + reverse("market:login"), data=b"x" * 2**21).status_code == 413
    for path in ("/healthz", "/readyz", "/metrics"):
        assert jack.get(address + path).status_code == 404
        answer = requests.get(f"http://127.0.0.1:{port}{path}", headers=PROBE)
        assert answer.status_code == 200, (path, answer.text)
    assert 'components_redis_up{node="' in answer.text
    server.terminate()
    assert server.wait(BOUND) in (0, -15)


NUMBER = 3_000


TEXT = "A message of fifty letters or so, number {:08}"

#: What the page calls it, and what makes the one of that number.
MADE: dict[str, Callable[[int], object]] = {
    "a ready task": lambda number: push_many(1),
    "a message in a chat": lambda number: Chat("guild").send("joe", TEXT.format(number)),
    "a message in a mailbox": lambda number: Mailbox(f"jack{number % 5}").push("joe", TEXT.format(number)),
    "a counter that counted once": lambda number: Counter(f"orders:{number}").update(),
    "a histogram that measured once": lambda number: measure(f"runs-us:{number}", 12_345),
    "a cached row on the schedule, not yet loaded": lambda number: RowCache("items", SHAPE).schedule(
        number, 60
    ),
    "a name in an address book": lambda number: AddressBook("players").add(f"Name of {number:06}", id=number),
    "a held lock": lambda number: lock(f"item:{number}", timeout=600).acquire(),
}


def make(what: str, many: int) -> None:
    Chat.create("joe", members=["jack"], text="hello", id="guild", settings=FREE)
    for number in range(many):
        MADE[what](number)
    flush()


@pytest.mark.slow
@pytest.mark.parametrize("what", MADE)
def test_nothing_takes_a_third_more_than_the_page_says(redis: Redis, what: str) -> None:
    """The page is about Redis 7.0; Valkey 9.1 needs less."""
    page = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(what)}[^|]*\| ([\d,]+) \|", page, re.M)
    make(what, 500)  # loads the scripts, whose memory is not that of the things
    redis.flushdb()
    before = redis.info("memory")["used_memory_dataset"]

    make(what, NUMBER)

    each = (redis.info("memory")["used_memory_dataset"] - before) / NUMBER
    assert found, f"{what}: {each:.0f}"
    said = int(found[1].replace(",", ""))
    assert 0 < each < said * 4 / 3, f"{what}: {each:.0f}"
