"""
Names for what visitors send: paths, hosts of referrers, and browsers with their systems.

Few names stand for many values, and leave out what people type: queries, passwords, versions of browsers. A name has
at most 200 characters, and "-" stands for lines that have no such value.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

NONE = "-"
LONGEST = 200  # characters
_SEEN = 1_000  # bytes of an agent
_CUT = "\N{HORIZONTAL ELLIPSIS}"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")
_PORT = re.compile(r":[0-9]*$")
#: What an agent has in it, and its name: the first that fits. Most agents claim to be others as well.
_PROGRAMS = (
    (r"Googlebot|Google-InspectionTool|GoogleOther|Storebot-Google|AdsBot-Google", "Googlebot"),
    (r"bingbot|BingPreview|adidxbot", "Bingbot"),
    (r"Applebot", "Applebot"),
    (r"YandexBot|YandexMobileBot", "YandexBot"),
    (r"GPTBot|ChatGPT-User|OAI-SearchBot", "OpenAI"),
    (r"ClaudeBot|Claude-User|anthropic-ai", "ClaudeBot"),
    (r"facebookexternalhit|meta-externalagent", "Facebook"),
    (r"(?i:bot\b|crawl|spider|slurp|scan|monitor|probe|preview|archiver)", "Other bots"),
    (r"^curl/", "curl"),
    (r"^Wget/", "Wget"),
    (
        r"(?i:python|aiohttp|httpx|okhttp|go-http-client|java/|axios|node-fetch|libwww|ruby|php|postman)",
        "Programs",
    ),
)
_BROWSERS = (
    (r"Edg(?:e|A|iOS)?/", "Edge"),
    (r"OPR/|Opera", "Opera"),
    (r"SamsungBrowser/", "Samsung Internet"),
    (r"Vivaldi/", "Vivaldi"),
    (r"YaBrowser/", "Yandex Browser"),
    (r"Firefox/|FxiOS/", "Firefox"),
    (r"Chrome/|CriOS/|Chromium/", "Chrome"),
    (r"MSIE |Trident/", "Internet Explorer"),
    (r"AppleWebKit.*Safari/", "Safari"),
)
_SYSTEMS = (
    (r"iPhone|iPad|iPod", "iOS"),
    (r"Android", "Android"),
    (r"Windows", "Windows"),
    (r"CrOS", "ChromeOS"),
    (r"Macintosh|Mac OS X", "macOS"),
    (r"Linux|X11", "Linux"),
)
_OTHER = "Other"


def referrer_label(host: bytes) -> str:
    """Return the host in small letters, without a user, a port and "www."."""
    name = _PORT.sub("", host.rpartition(b"@")[2].decode("utf-8", "replace").lower())
    return _legible(name.removeprefix("www.").encode()) or NONE


@lru_cache(10_000)
def agent_label(agent: bytes) -> str:
    """Return the browser and the system, such as "Firefox, Linux"; programs and bots have no system."""
    text = agent[:_SEEN].decode("utf-8", "replace")
    if not text:
        return NONE
    if program := _first(_PROGRAMS, text):
        return program
    found = (_first(_BROWSERS, text) or _OTHER, _first(_SYSTEMS, text))
    return ", ".join(filter(None, found))


LABELS: Mapping[str, Callable[[bytes], str]] = {
    "path": lambda path: _legible(path) or NONE,
    "referrer": referrer_label,
    "agent": agent_label,
}


def _first(names: Sequence[tuple[str, str]], text: str) -> str:
    return next((name for pattern, name in names if re.search(pattern, text)), "")


def _legible(text: bytes) -> str:
    """Return text without control characters that is not too long."""
    found = _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text[: 4 * LONGEST + 4].decode("utf-8", "replace"))
    return found if len(found) <= LONGEST else found[: LONGEST - 1] + _CUT
