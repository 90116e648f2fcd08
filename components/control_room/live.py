"""
Live refresh: what a page that is open in a browser is sent so that its figures stay true.

live.js asks for the page again and again. It names in X-Live-Parts what it has, and gets only what has changed. A
page is cut where rows, list items and the like begin, and each piece is known by a digest, so the server stores
nothing about its readers, any process can answer, and templates need not know.

Answers are compressed although they are secret: no other site can send these headers, so none can measure what it
makes the page say (BREACH).
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags, quote_etag

#: Where pieces begin.
_STARTS = re.compile(r"(?=<(?:div|dl|figure|form|li|section|svg|table|tr)[\s>])")
#: How many there are at most. A request names all digests in a header, which has 8,190 bytes on some servers.
_MOST = 256
_DIGEST = 6  # bytes, which are eight characters
_SMALL = 200  # bytes that are not worth compressing


@dataclass(frozen=True)
class Version:
    """A page at one time: its pieces, and their digests."""

    pieces: Sequence[str]
    digests: Sequence[str]

    @classmethod
    def of(cls, html: str) -> Version:
        pieces = _STARTS.split(html)
        some = -(-len(pieces) // _MOST)
        joined = ["".join(pieces[at : at + some]) for at in range(0, len(pieces), some)]
        return cls(joined, [_digest(piece) for piece in joined])

    @property
    def etag(self) -> str:
        return quote_etag(_digest(" ".join(self.digests)))

    def since(self, known: Sequence[str]) -> str:
        """
        Return as JSON how to make this version out of the pieces with the digests *known*.

        It is a list, in order, of pairs: of an index and a number, for so many known pieces from there on; or of a
        digest and a text, for a piece that is not known.
        """
        places = {digest: at for at, digest in enumerate(known)}
        pairs: list[list[Any]] = []
        for digest, piece in zip(self.digests, self.pieces, strict=True):
            at = places.get(digest)
            if at is None:
                pairs.append([digest, piece])
            elif pairs and isinstance(pairs[-1][0], int) and sum(pairs[-1]) == at:
                pairs[-1][1] += 1
            else:
                pairs.append([at, 1])
        return json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))


def send_changes(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return *response*, which will hold only what has changed if live.js has asked for that."""
    if "X-Live-Parts" in request.headers and isinstance(response, TemplateResponse):
        response.add_post_render_callback(partial(_reduce, request))
    return response


def _reduce(request: HttpRequest, response: HttpResponse) -> None:
    if response.status_code != 200:
        return
    version = Version.of(response.text)
    patch_vary_headers(response, ["Accept-Encoding", "X-Live-Parts"])
    response["ETag"] = version.etag
    if version.etag in parse_etags(request.headers.get("If-None-Match", "")):
        response.status_code, response.content = 304, b""
        del response["Content-Type"]
        return
    body = version.since(request.headers["X-Live-Parts"].split()).encode()
    response["Content-Type"] = "application/json"
    if "gzip" in request.headers.get("Accept-Encoding", "") and len(body) > _SMALL:
        response["Content-Encoding"] = "gzip"
        body = gzip.compress(body, 6, mtime=0)
    response.content = body


def _digest(text: str) -> str:
    return urlsafe_b64encode(blake2b(text.encode(), digest_size=_DIGEST).digest()).decode()
