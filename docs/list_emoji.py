"""
Writes components/services/chat/emoji.txt again, from the emoji-test.txt of Unicode:

    python -m docs.list_emoji emoji-test.txt

In a form, each T is a skin tone, the same one, and D is another one.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

FILE = Path(__file__).parents[1] / "components/services/chat/emoji.txt"
TONES = "[\U0001f3fb-\U0001f3ff]"


def form(emoji: str) -> str:
    tones = re.findall(TONES, emoji)
    return re.sub(TONES, lambda found: "T" if found[0] == tones[0] else "D", emoji)


def main(source: str) -> None:
    lines = re.findall(
        r"^([0-9A-F ]+?) *; (?:fully-qualified|component)", Path(source).read_text("utf-8"), re.M
    )
    forms = {form("".join(chr(int(code, 16)) for code in line.split())) for line in lines}
    FILE.write_text(textwrap.fill(" ".join(sorted(forms)), 110, break_on_hyphens=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
