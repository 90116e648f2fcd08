"""A mail message comes out of JSON equal to what went in, or does not go in."""

from __future__ import annotations

import json
import random
from email.charset import Charset
from email.headerregistry import Address
from email.message import EmailMessage as StandardMessage
from email.message import MIMEPart
from email.mime.base import MIMEBase
from email.mime.image import MIMEImage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any

import django
import pytest
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.utils.translation import gettext_lazy, override
from hypothesis import given, settings
from hypothesis import strategies as st

from components.exceptions import NotSerializable
from components.services.queues.mail.messages import from_json, largest_part, message_id, to_json

WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
LINES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
TEXTS = st.lists(LINES, max_size=5).map("\n".join)
NAMES = st.from_regex(r"[A-Za-z]{1,20}", fullmatch=True)
ADDRESSES = st.lists(st.emails() | st.builds("{} <{}>".format, NAMES, st.emails()), max_size=3)
TEXT_FILES = st.tuples(st.none() | WORDS, TEXTS, st.sampled_from(["text/plain", "text/csv"]))
BINARY_FILES = st.tuples(
    st.none() | WORDS, st.binary(max_size=200), st.sampled_from(["image/png", "application/pdf"])
)
ATTACHMENTS = st.lists(TEXT_FILES | BINARY_FILES, max_size=3)
HEADERS = st.dictionaries(st.sampled_from(["X-Tag", "List-Id", "Sender"]), LINES.map(ascii))
FIXED = {"Date": "Fri, 21 Nov 2026 08:00:00 +0000", "Message-ID": "<1@example.com>"}


@st.composite
def messages(draw: st.DrawFn) -> EmailMessage:
    message = draw(st.sampled_from([EmailMessage, EmailMultiAlternatives]))(
        subject=draw(LINES),
        body=draw(TEXTS),
        from_email=draw(st.none() | st.emails()),
        to=draw(ADDRESSES),
        cc=draw(ADDRESSES),
        bcc=draw(ADDRESSES),
        reply_to=draw(ADDRESSES),
        headers={**FIXED, **draw(HEADERS)},
        attachments=draw(ATTACHMENTS),
    )
    if isinstance(message, EmailMultiAlternatives) and draw(st.booleans()):
        message.attach_alternative(draw(TEXTS), "text/html")
        message.attach_alternative(draw(st.binary(max_size=50)), "application/octet-stream")
    if draw(st.booleans()):
        message.content_subtype = "html"
    if draw(st.booleans()):
        message.encoding = "utf-8"
    return message


def carry(message: EmailMessage) -> Any:
    """*message* as a worker gets it."""
    return from_json(json.loads(json.dumps(to_json(message))))


def as_bytes(message: EmailMessage) -> bytes:
    """As it goes over the wire, with boundaries that do not depend on chance."""
    random.seed(1)
    return message.message().as_bytes()


def fields(message: EmailMessage) -> dict[str, Any]:
    return {name: value for name, value in vars(message).items() if name not in ("connection", "_connection")}


def hello(**options: Any) -> EmailMessage:
    return EmailMessage(**{"subject": "Hello", "body": "World", "to": ["b@example.com"]} | options)


def with_(**attributes: Any) -> EmailMessage:
    message = hello()
    vars(message).update(attributes)
    return message


@pytest.mark.slow
@settings(deadline=None)
@given(messages())
def test_every_field_comes_out_as_it_went_in(sent: EmailMessage) -> None:
    received = carry(sent)

    assert type(received) is type(sent)
    assert fields(received) == fields(sent)
    assert received.recipients() == sent.recipients()
    assert as_bytes(received) == as_bytes(sent)  # over the wire, as it would have gone without the queue


def picture() -> MIMEBase:
    part = MIMEImage(bytes(range(256)), "png")
    part.add_header("Content-ID", "<logo>")
    part.add_header("Content-Disposition", "inline", filename=("utf-8", "", "Größe.png"))
    return part


def calendar() -> MIMEBase:
    part = MIMEText("BEGIN:VCALENDAR\nSUMMARY:Grüße\nFrom here\nEND:VCALENDAR\n", "calendar", "utf-8")
    part.set_param("method", "REQUEST")
    return part


def nested() -> MIMEBase:
    part = MIMEMultipart("related")
    part.attach(calendar())
    part.attach(picture())
    return part


def modern() -> MIMEPart:
    part = MIMEPart()
    part.set_content(b"\x00\xff" * 100, maintype="application", subtype="pgp-signature", filename="Größe.asc")
    return part


PARTS = [picture, calendar, nested]
if django.VERSION >= (6, 0):
    PARTS.append(modern)


@pytest.mark.parametrize("make", PARTS)
def test_a_finished_part_is_carried_byte_by_byte(make: Any) -> None:
    sent = hello(headers=FIXED)
    sent.attachments = [make()]

    received = carry(sent)

    assert isinstance(received.attachments[0], MIMEPart if make is modern else MIMEBase)
    assert received.attachments[0].as_bytes() == sent.attachments[0].as_bytes()
    assert as_bytes(received) == as_bytes(sent)


def forwarded() -> StandardMessage:
    content = StandardMessage()
    content["Subject"] = "Hello"
    content.set_content("From Günther\n")
    return content


@pytest.mark.parametrize(
    "content", [hello(headers=FIXED), forwarded(), "Subject: x\n\ny", b"Subject: x\n\ny"]
)
def test_a_mail_can_be_attached_to_a_mail(content: Any) -> None:
    sent = hello(headers=FIXED, attachments=[("forwarded.eml", content, "message/rfc822")])

    assert as_bytes(carry(sent)) == as_bytes(sent)


@pytest.mark.parametrize("name", ["Message-ID", "message-id", "MESSAGE-ID"])
def test_a_message_id_of_the_sender_is_kept(name: str) -> None:
    received = carry(hello(headers={name: "<sale-1@example.com>"}))

    assert received.message().get_all("Message-ID") == ["<sale-1@example.com>"]


def test_without_one_each_sending_gets_one_that_stays() -> None:
    message = hello()
    document, again = to_json(message), to_json(message)
    first, second, other = (from_json(each).message() for each in (document, document, again))

    assert first["Message-ID"] == second["Message-ID"] == message_id(document["fields"]["extra_headers"])
    assert first["Date"] == second["Date"]
    assert other["Message-ID"] != first["Message-ID"]
    assert message.extra_headers == {}
    nested = to_json(hello(attachments=[("forwarded.eml", hello(), "message/rfc822")]))
    assert as_bytes(from_json(nested)) == as_bytes(from_json(nested))


def test_translations_are_made_in_the_language_of_the_sender() -> None:
    day = gettext_lazy("Monday")
    with override("de"):
        document = to_json(hello(subject=day, body=day, headers={"X-Day": day}))
    received = from_json(document)

    assert [received.subject, received.body, received.extra_headers["X-Day"]] == ["Montag"] * 3


def test_attributes_that_other_backends_look_at_are_carried() -> None:
    sent = hello(to=[Address("Jack", "jack", "example.com")])
    sent.tags, sent.metadata = ["welcome"], {"order": {"id": 7, "raw": b"\xff"}}  # type: ignore[attr-defined]
    received = carry(sent)

    assert (received.tags, received.metadata) == (["welcome"], {"order": {"id": 7, "raw": b"\xff"}})
    assert received.to == ["Jack <jack@example.com>"]


class Signed(EmailMessage):
    def message(self, **options: Any) -> Any:
        return super().message(**options)


class Unwritable:
    """Not JSON."""


def unwritable() -> MIMEBase:
    part = MIMEBase("application", "x-odd")
    part.set_payload(Unwritable())
    return part


def ambiguous() -> MIMEBase:
    part = MIMEMultipart(boundary="same")
    part.attach(MIMEText("one\n--same\ntwo"))
    return part


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        (Signed("Hello", to=["b@example.com"]), r"Signed .*\(message\)"),
        *(
            (with_(merge_data=[value]), r"merge_data\[0\]")
            for value in ({1, 2}, Unwritable(), {1: "a"}, {"$bytes": "no bytes"})
        ),
        (with_(attachments=[("a.txt", "a", "text/plain"), unwritable()]), r"attachments\[1\]"),
        (with_(attachments=[ambiguous()]), r"attachments\[0\]"),
    ],
)
def test_what_a_worker_could_not_repeat_is_refused_by_its_place(message: EmailMessage, wrong: str) -> None:
    with pytest.raises(NotSerializable, match=rf"Mail 'Hello' <.+>: {wrong}"):
        to_json(message)


def test_an_encoding_that_is_not_a_name_is_refused() -> None:  # from 6.0 on, by Django
    with pytest.raises(TypeError):
        to_json(with_(encoding=Charset("utf-8")))


def test_the_largest_part_is_named() -> None:
    small = to_json(hello())
    files = [("a.txt", "a", "text/plain"), ("b.pdf", b"b" * 3000, "application/pdf")]
    large = to_json(hello(headers=FIXED, attachments=files))

    assert largest_part([small, large]) == (
        "Mail 'Hello' <1@example.com>: attachments[1] 'b.pdf' is its largest part, 4,044 bytes"
    )
    assert "body is its largest part, 1,001 bytes" in largest_part([small, to_json(hello(body="x" * 999))])
