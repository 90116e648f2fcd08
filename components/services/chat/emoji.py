"""
The emoji that can be reactions: those of Unicode's emoji-test.txt, version 18.0.

People type some of them with and without variation selectors; they are stored with the selectors that Unicode names.
The file has one form for all skin tones: T is a tone, and D is another one. docs/list_emoji.py writes it.
"""

import re
from functools import cache
from pathlib import Path

from components.exceptions import InvalidMessage
from components.kit.translation import gettext

_FILE = Path(__file__).with_name("emoji.txt")
_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_SELECTOR = "\ufe0f"
_SYMBOL = (
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21ff\u2300-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
)
_PART = f"{_SYMBOL}[{_SELECTOR}{_TONES}]?"
#: The form of an emoji, for the description of the API: a keycap, a flag, or symbols that are joined. The list has
#: fewer.
FORM = (
    f"[#*0-9]{_SELECTOR}?\u20e3|[\U0001f1e6-\U0001f1ff]{{2}}"
    f"|{_PART}(?:[\U000e0020-\U000e007e]{{1,6}}\U000e007f|(?:\u200d{_PART}){{0,3}})"
)
#: What earlier releases took: it can still be removed.
_EARLIER = re.compile(
    "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\u200d\ufe0f\U000e0020-\U000e007f]{1,12}"
)


def check_emoji(emoji: object, is_on: bool = True) -> str:
    """
    Return *emoji* as it is stored: one of Unicode's, or if *is_on* is false, what earlier releases took as well.

    Raises InvalidMessage.
    """
    if isinstance(emoji, str):
        found = _known().get(emoji.replace(_SELECTOR, ""), "")
        rest = iter(found)
        if found and all(each in rest for each in emoji):
            return found
        if not is_on and _EARLIER.fullmatch(emoji):
            return emoji
    wrong = gettext("%(emoji)s cannot be a reaction; it must be one emoji.")
    raise InvalidMessage(wrong % {"emoji": repr(emoji)[:80]})


def qualified(emoji: str) -> str:
    """Return an emoji with the variation selectors that Unicode names for it, or else as it is."""
    return _known().get(emoji.replace(_SELECTOR, ""), emoji)


@cache
def _known() -> dict[str, str]:
    """Return all emoji by their characters without variation selectors."""
    forms = _FILE.read_text("utf-8").split()
    toned = [form.replace("T", tone) if "T" in form else form for form in forms for tone in _TONES]
    all_toned = [form.replace("D", tone) for form in toned for tone in _TONES if tone not in form]
    return {each.replace(_SELECTOR, ""): each for each in (*all_toned, *toned) if "D" not in each}
