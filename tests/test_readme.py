"""
What README says, done in an empty folder: its settings at the end of those of `startproject`, its tasks and models in
a new app, its examples in a shell, its commands. Nothing else is written than what README leaves to the reader.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import django
import pytest

from components.embedded import EmbeddedServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = [
    dedent(block)
    for block in re.findall(
        r"^ *```python\n(.*?)^ *```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.M
    )
]
#: What README's examples take as given.
GIVEN = """
from types import SimpleNamespace

from shop.models import Item
from shop.tasks import send_sold_email

sale, buyer, client_id = SimpleNamespace(pk=1), "ann", "1"
Item.objects.create(pk=42, name="sword", stock=3)
"""
LOOK = """
import json

from django.core.mail import send_mail

send_mail("Sold", "The sword is sold.", "market@example.com", ["ann@example.com"])
item = Item.objects.get(pk=42)
print(json.dumps({
    "owner": item.owner,
    "stock": Item.cached.get(42).stock,
    "chat": [message.text for message in chat.history("jeff").messages],
    "news": [message.text for message in news.messages],
}))
"""
COUNTED = """
from components.services.counters import Counter

print(Counter("sales").get(3_600).total)
"""


def block(beginning: str) -> str:
    """The only code of README that has a line that begins so."""
    [found] = [each for each in BLOCKS if re.search(rf"^{re.escape(beginning)}", each, re.MULTILINE)]
    return found


def mail_settings() -> str:
    return block(
        "# settings.py, on Django 6.1" if django.VERSION >= (6, 1) else "# settings.py, on Django 5.2"
    )


class Site:
    """A project in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"},
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "REDIS_URL": url,
        }
        self.run("-m", "django", "startproject", "mysite", ".")
        self.manage("startapp", "shop")
        self.settings = folder / "mysite" / "settings.py"

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        command = [sys.executable, "-W", "error::DeprecationWarning:mysite", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout

    def manage(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        return self.run("manage.py", *arguments, codes=codes)

    def add(self, text: str) -> None:
        with self.settings.open("a") as settings:
            settings.write(f"\n{text}\n")

    def begin(self) -> None:
        """Write what README leaves to the reader, and what it says of tasks and models."""
        self.add('INSTALLED_APPS += ["shop"]')
        (self.folder / "shop" / "tasks.py").write_text(block("# tasks.py"))
        (self.folder / "shop" / "models.py").write_text(block("# models.py"))
        self.manage("makemigrations", "shop")
        self.manage("check", "--fail-level", "WARNING")
        self.manage("migrate")

    def shell(self, *codes: str) -> str:
        return self.run("-c", "\n".join(["import django\ndjango.setup()", *codes]))

    def findings(self) -> Mapping[str, str]:
        found = json.loads(self.manage("doctor", "--json", codes=(0, 1, 2)))["findings"]
        return {each["id"]: each["message"] for each in found}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Site]:
    (tmp_path / "site").mkdir()
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path / "redis", server=program) as server:
        site = Site(tmp_path / "site", server.url)
        site._environment["DJANGO_SETTINGS_MODULE"] = "mysite.settings"
        yield site


def test_what_readme_says_works_in_an_empty_folder(site: Site) -> None:
    site.add(block("# mysite/settings.py\n"))
    site.add(mail_settings())
    site.begin()

    said = site.shell(
        GIVEN,
        block("send_sold_email.enqueue"),
        block("with lock("),
        block("chat = Chat.create("),
        block('count("sales")'),
        block("Item.cached.schedule"),
        LOOK,
    )
    worked = site.manage("runworker", "--burst", "--no-reload")

    found = json.loads(said.splitlines()[-1])
    assert found["owner"] == "ann"  # written under a lock
    assert found["stock"] == 3  # of the cached row
    assert "message 2" in found["chat"]
    assert "message 2" in found["news"]
    assert site.shell(COUNTED).strip() == "1"
    assert "The sword is sold." in worked
    counts = json.loads(site.manage("queues", "--json"))["backends"]["default"]["queues"]
    assert {queue["name"]: (queue["successful"], queue["delayed"]) for queue in counts} == {
        "mail": (1, 1),
        "default": (1, 0),
    }
    # Neither a worker nor a daemon of rows runs now.
    assert site.findings().keys() - {"components.E122"} == {"components.I100", "components.W113"}


@pytest.mark.long
def test_the_settings_that_the_doctor_prints_are_all_that_is_missing(site: Site) -> None:
    site.add('INSTALLED_APPS += ["components"]')
    assert {"components.E002", "components.W010"} <= site.findings().keys()
    printed = site.manage("doctor", "--settings")
    site.add(printed)
    site.begin()

    site.shell(GIVEN, block("send_sold_email.enqueue"))
    site.manage("runworker", "--burst", "--no-reload")

    assert "redis://localhost:6379/1" in printed
    assert site.manage("doctor", "--settings") == "# Nothing is missing.\n"
    assert site.findings().keys() == {"components.I100", "components.W113"}
