"""
What the release before has stored is read and continued. tests/stored/ has it, as Redis keeps it:

    DJANGO_SETTINGS_MODULE=tests.settings python manage.py shell -c \\
        "from tests.test_upgrade import store; store('0.2.0', '/path/to/redis-server')"
"""

import json
import re
from base64 import b64decode, b64encode
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.test import Client
from redis import Redis

from components import __version__
from components.doctor import diagnose
from components.embedded import EmbeddedServer
from components.exceptions import UnknownStoredFormat
from components.kit.release import FORMAT, check_format, key
from components.services import counters, locks, mailboxes, queues, rows
from components.services.autocomplete import AddressBook, RecentContacts
from components.services.chat import Chat, Inbox
from components.services.logs import Aggregation
from components.services.semaphores import Semaphore
from components.testing import empty, run_tasks
from tests.commands.processes import Command
from tests.support.logs import fill, joined, stream

STORED = Path(__file__).parent / "stored"


def write() -> None:
    """Let each service store something."""
    queues.TaskQueue().push("tests.tasks.echo", ["hello"])
    mailboxes.Mailbox("jack").push("jill", "first")
    mailboxes.Mailbox("jack").push("jill", "second")
    chat = Chat.create("jack", members=["jill"], id="guild:7")
    chat.send("jill", "hello")
    chat.send("jack", "hello yourself")
    AddressBook("items").load([(1, "sword"), (2, "shield")])
    RecentContacts("jack").touch("jill", label="Jill")
    counters.Counter("sales").update(3)
    counters.flush()
    locks.lock("held", timeout=3_600, owner="jack").acquire()
    Semaphore("api", limit=2, lease=3_600).acquire()
    rows.RowCache("items", rows.Shape([("id", "integer")])).schedule("42", 60)
    joined("places")
    fill(stream(), 2)


def dump(redis: Redis) -> dict[str, tuple[int, str]]:
    """Each key, with its remaining milliseconds and its value as RESTORE takes it."""
    return {
        name.decode(): (max(0, redis.pttl(name)), b64encode(redis.dump(name)).decode())
        for name in sorted(redis.scan_iter())
    }


@pytest.fixture(params=sorted(STORED.glob("*.json")), ids=lambda path: path.stem)
def stored(request: pytest.FixtureRequest, redis: Redis) -> None:
    for name, (ttl, value) in json.loads(request.param.read_text()).items():
        redis.restore(name, ttl, b64decode(value))


@pytest.mark.usefixtures("stored")
def test_what_the_release_before_has_stored_is_read_and_continued() -> None:
    """However long ago that was: leases, counts and what is remembered of calls may have ended."""
    assert not locks.lock("held", blocking=False).acquire()
    assert "hello" in [info.return_value for info in run_tasks()]
    box = mailboxes.Mailbox("jack")
    box.push("jill", "third")
    mails = box.pull(3)
    assert [mail.text for mail in mails] == ["first", "second", "third"]
    assert sorted(mail.id for mail in mails) == [mail.id for mail in mails]
    chat = Chat("guild:7")
    assert chat.send("jill", "and more").seq == 4
    said = [item.text for item in chat.history("jack").messages if not item.event]
    assert said == ["hello", "hello yourself", "and more"]
    assert [info.chat_id for info in Inbox("jack").chats()] == ["guild:7"]
    assert [entry.id for entry in AddressBook("items").complete("sw")] == ["1"]
    assert [contact.id for contact in RecentContacts("jack").complete("Ji")] == ["jill"]
    counters.Counter("sales").update(2)
    assert counters.Counter("sales").get(60).total in (2, 5)
    Semaphore("api", limit=2).acquire().release()
    assert [info.name for info in rows.RowReader().names()] == ["items"]
    assert len(Aggregation("places").consumer().claim()) == 2


@pytest.mark.slow
@pytest.mark.django_db
def test_another_format_is_refused_in_words(redis: Redis, redis_server: EmbeddedServer) -> None:
    check_format()
    assert redis.get(key()) == b"%d" % FORMAT
    redis.set(key(), FORMAT + 1)

    with pytest.raises(UnknownStoredFormat, match=f"b'{FORMAT + 1}', and release"):
        check_format()
    with Command(redis_server.url, "pollqueue", "--skip-checks") as command:
        assert command.exit_code() == 2
    assert "and release" in command.output
    assert Client().get("/readyz").status_code == 503
    assert "components.E101" in [message.id for message in diagnose()]


def test_a_release_is_a_dated_section_with_its_commit_and_has_its_file() -> None:
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d, commit [0-9a-f]{8}$", text, re.MULTILINE)

    assert {path.stem for path in STORED.glob("*.json")} >= {*released}
    assert "dev" in __version__ or released[0] == __version__
    assert ("## Unreleased" in text) == ("dev" in __version__)


def store(release: str, program: str) -> None:
    """Write the file of *release*, with a server of Redis 6.2: newer ones read what it dumps."""
    with (
        TemporaryDirectory() as folder,
        EmbeddedServer(Path(folder), server=Path(program), appendonly=False) as server,
        empty(server) as redis,
    ):
        write()
        (STORED / f"{release}.json").write_text(json.dumps(dump(redis), indent=0) + "\n")
