"""
What tests need besides Python packages: Chromium, PostgreSQL, nginx, systemd-analyze, GNU gettext, and the test
suites of Django and redis-py.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.upstream import suites

#: The first draws the same pages in half the time: it has no window.
CHROMIUM = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable"),
)
#: Where Debian and its kin keep PostgreSQL's programs, which they do not put on PATH.
POSTGRES = Path("/usr/lib/postgresql")

NO_CHROMIUM = f"no Chromium on PATH (looked for {', '.join(CHROMIUM)})"
NO_POSTGRES = f"PostgreSQL's initdb and postgres are neither on PATH nor under {POSTGRES}"
NO_NGINX = "no nginx on PATH nor in /usr/sbin"
NO_SYSTEMD = "no systemd-analyze on PATH"
NO_GETTEXT = "no xgettext on PATH"


def find_nginx() -> str | None:
    """Return the path of nginx; Debian keeps it where only root looks."""
    return shutil.which("nginx") or shutil.which("/usr/sbin/nginx")


def find_systemd() -> str | None:
    """Return the path of systemd-analyze, which needs no running systemd."""
    return shutil.which("systemd-analyze")


def find_gettext() -> str | None:
    """Return the path of GNU gettext's xgettext."""
    return shutil.which("xgettext")


def find_chromium() -> str | None:
    """Return the path of the browser, or None if there is none."""
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


def find_postgres() -> Path | None:
    """Return the folder with initdb and postgres: of PATH, else of the newest version; None if there is none."""
    on_path = [Path(found).parent for found in [shutil.which("postgres")] if found]
    versions = sorted(POSTGRES.glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True)
    candidates = [folder for folder in (*on_path, *versions) if (folder / "initdb").exists()]
    return next((folder for folder in candidates if (folder / "postgres").exists()), None)


def missing() -> Iterator[str]:
    """Say of each that is not here why tests would be skipped."""
    wanted = {
        NO_CHROMIUM: find_chromium,
        NO_POSTGRES: find_postgres,
        NO_NGINX: find_nginx,
        NO_SYSTEMD: find_systemd,
        NO_GETTEXT: find_gettext,
    }
    yield from (said for said, find in wanted.items() if find() is None)
    for suite in suites():
        if not suite.folder.exists():
            yield f"the tests of {suite.requirement}, which python -m tests.upstream downloads"
