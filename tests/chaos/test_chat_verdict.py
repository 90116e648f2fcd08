"""The verdict on the chats: that it finds what is lost, twice, out of order, strange or untold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from components.services.chat import ChatMessage, Event, EventKind
from tests.chaos.chats import notes
from tests.chaos.chats.chronicle import Accepted, Chronicle
from tests.chaos.chats.reading import Gap, Reading

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def message(seq: int, sender: str, event: Event | None = None, client_id: str = "") -> ChatMessage:
    sent_at = _BEGAN + timedelta(seconds=seq)
    client_id = client_id or ("" if event else f"{sender}.{seq}")
    return ChatMessage("c", seq, sender, "", None, (), sent_at, client_id, event)


def happened(seq: int, kind: EventKind, user: str = "", detail: str = "") -> ChatMessage:
    return message(seq, "", Event(kind, "", user, detail))


#: jack is out from 5 to 8, and 9 is deleted.
HISTORY = [
    happened(1, EventKind.CREATED),
    *(message(seq, "joe") for seq in (2, 3)),
    message(4, "jack"),
    happened(5, EventKind.LEFT, "jack"),
    *(message(seq, "joe") for seq in (6, 7)),
    happened(8, EventKind.JOINED, "jack"),
    happened(10, EventKind.DELETED, detail="9"),
    *(message(seq, "joe") for seq in (11, 12)),
]
ACCEPTED = {seq: Accepted("joe", f"joe.{seq}", seq) for seq in (2, 3, 6, 7, 9, 11, 12)}
ACCEPTED[4] = Accepted("jack", "jack.4", 4)


def chronicle(
    history: Sequence[ChatMessage] = HISTORY, accepted: dict[int, Accepted] = ACCEPTED
) -> Chronicle:
    found = Chronicle("c", frozenset({"joe", "jack"}))
    found.add_accepted(accepted.values())
    found.add_history(history)
    return found


def tokens(*seqs: int) -> list[str]:
    said = {seq: token for token, seq in chronicle().seqs.items()}
    return [said[seq] for seq in seqs]


def complaints_of(*answers: Sequence[int], sees_his_own: bool = False, missed: int = 0) -> list[str]:
    """On jack, who got these; he was told that so many are missing before each."""
    reading = Reading("jack", chronicle())
    for answer in answers:
        reading.note(missed, tokens(*answer))
    return list(reading.check(sees_his_own=sees_his_own))


def test_a_sequence_that_is_as_it_was_accepted_is_not_complained_of() -> None:
    assert list(chronicle().check(12)) == []


def test_a_message_that_was_accepted_and_is_not_there_is_lost() -> None:
    history = [message for message in HISTORY if message.seq != 7]

    assert any("joe.7" in complaint and "lost" in complaint for complaint in chronicle(history).check(12))


def test_a_message_that_stands_there_under_two_seqs_is_found() -> None:
    history = [*HISTORY, message(13, "joe", client_id="joe.12")]

    assert any("joe.12" in complaint for complaint in chronicle(history).check(13))


def test_two_senders_who_were_told_the_same_seq_are_found() -> None:
    found = Chronicle("c", frozenset())
    found.add_accepted([ACCEPTED[2], Accepted("jack", "jack.0", 2)])

    assert any("same seq" in complaint for complaint in found.check(0))


def test_a_seq_without_anything_is_found() -> None:
    accepted = {seq: each for seq, each in ACCEPTED.items() if seq != 9}

    assert any("[9]" in complaint for complaint in chronicle(accepted=accepted).check(12))


def test_messages_of_a_sender_that_changed_places_are_found() -> None:
    accepted = ACCEPTED | {6: Accepted("joe", "joe.7", 6), 7: Accepted("joe", "joe.6", 7)}

    assert any(
        "joe.6" in complaint and "after" in complaint for complaint in chronicle((), accepted).check(12)
    )


def test_a_message_whose_time_is_before_that_of_the_one_before_is_found() -> None:
    late = message(13, "joe")
    history = [*HISTORY, ChatMessage(**{**vars(late), "sent_at": _BEGAN})]

    assert any("comes after" in complaint for complaint in chronicle(history).check(13))


def test_a_message_that_was_deleted_and_is_there_is_found() -> None:
    history = sorted([*HISTORY, message(9, "joe")], key=lambda message: message.seq)

    assert any("was deleted" in complaint for complaint in chronicle(history).check(12))


@pytest.mark.parametrize(
    "answers",
    [
        [[1, 2, 3, 4], [9, 10, 11, 12]],
        [[1, 2, 3], [10, 11, 12]],  # his own is missing, and what was deleted
        [[1, 2], [1, 2, 3, 4], [10], [10, 11, 12]],  # twice, before he had acknowledged it
        [[1], [10, 11, 12]],  # he was not quick before he left
    ],
)
def test_a_reader_who_got_all_messages_does_not_complain(answers: list[list[int]]) -> None:
    assert complaints_of(*answers) == []


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        ([[1, 3], [10, 11, 12]], "never got [2]"),
        ([[1, 2, 3], [10, 12]], "never got [11]"),
        ([[1, 2, 3], [10, 11]], "never got [12]"),
        ([[1, 3, 2], [10, 11, 12]], "not in order"),
        ([[1, 2, 3, 6], [10, 11, 12]], "was not there"),
        ([[1, 2, 3], [8, 10, 11, 12]], "was not there"),
    ],
)
def test_missing_and_forbidden_keys_of_a_reader_are_found(answers: list[list[int]], word: str) -> None:
    assert any(word in complaint for complaint in complaints_of(*answers))


def test_a_reader_with_their_own_position_must_get_their_own_messages() -> None:
    assert complaints_of([1, 2, 3], [8, 10, 11, 12], sees_his_own=True) == []  # he left before he looked
    reading = Reading("joe", chronicle())
    reading.note(0, tokens(1, 2, 4, 5, 6, 7, 8, 10, 11, 12))

    assert any("never got [3]" in complaint for complaint in reading.check(sees_his_own=True))


def test_messages_lost_to_retention_are_counted() -> None:
    reading = Reading("joe", chronicle())
    reading.note(0, tokens(1))
    reading.note(3, tokens(5, 6, 7, 8, 10, 11, 12))
    assert list(reading.check(sees_his_own=True)) == []

    for told in (2, 5):
        reading.told = [Gap(position=0, before=1, after=5, told=told)]
        assert any("was told of" in complaint for complaint in reading.check(sees_his_own=True))


def test_a_message_pulled_again_after_its_acknowledgement_is_found() -> None:
    reading = Reading("jack", chronicle())
    reading.note(0, tokens(1, 2, 3))
    reading.note_acknowledged(2)
    reading.note(0, tokens(2, 3))

    assert any("had acknowledged 2" in complaint for complaint in reading.check(sees_his_own=False))


def test_a_message_never_sent_is_found_out() -> None:
    reading = Reading("jack", chronicle())
    reading.note(0, ["2=jill.0", "3:muted"])

    assert any("never said" in complaint for complaint in reading.check(sees_his_own=False))


def test_a_line_that_was_not_written_to_its_end_does_not_count(tmp_path: Path) -> None:
    notes.Notes(tmp_path, "reader-0").write("K jack c 1")
    (tmp_path / "reader-0.9.9").write_text("K jack c 2\nK jack c 345")
    notes.Notes(tmp_path, "reader-01").write("K jill c 3")

    assert list(notes.read(tmp_path, "reader-0")) == [["K", "jack", "c", "1"], ["K", "jack", "c", "2"]]
