"""
Copy this folder for a site of yours, with its name, host and package where the files have those of the demo.

    python deploy/for_site.py --name shop --host shop.example --package shop ../shop/deploy
"""

from __future__ import annotations

import re
import shutil
import sys
from argparse import ArgumentParser
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: As units of systemd, users, images, secrets and folders may be called.
_NAME, _HOST, _PACKAGE = r"[a-z][a-z0-9-]{0,30}", r"[a-z0-9-]+(\.[a-z0-9-]+)*", r"[A-Za-z_]\w*"


def main(arguments: list[str] | None = None) -> None:
    """Read the command line. What exists is not overwritten."""
    parser = ArgumentParser(description="Copies deploy/ for your site.")
    parser.add_argument(
        "--name", required=True, help="The site: units, user, image and folders begin with it."
    )
    parser.add_argument("--host", required=True, help="The name under which visitors reach it.")
    parser.add_argument("--package", required=True, help="The package with asgi.py.")
    parser.add_argument("folder", type=Path, help="The folder to make.")
    given = parser.parse_args(arguments)
    for option, form in (("name", _NAME), ("host", _HOST), ("package", _PACKAGE)):
        if not re.fullmatch(form, getattr(given, option), re.ASCII):
            parser.error(
                f"--{option} {getattr(given, option)!r} has other characters than such a name may have."
            )
    if given.folder.exists():
        parser.error(f"{given.folder} exists. Name a new folder, or remove it.")
    copy(given.name, given.host, given.package, given.folder)


def copy(name: str, host: str, package: str, folder: Path) -> None:
    """Write the files into *folder*."""
    words = {"fakegame.example": host, "fakegame": name, "project": package}
    for path in sorted(HERE.rglob("*")):
        to = folder / path.relative_to(HERE).as_posix().replace("fakegame", name)
        if not path.is_file() or path.suffix in (".py", ".pyc"):
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(
            "|".join(map(re.escape, words)), lambda found: words[found[0]], path.read_text(encoding="utf-8")
        )
        to.write_text(text, encoding="utf-8")
        shutil.copymode(path, to)


if __name__ == "__main__":
    main(sys.argv[1:])
