"""The form with which a player writes to a member of the guild."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.http import QueryDict
from django.urls import reverse

from components.services.autocomplete.forms import EntryChoiceField
from project.market.models import Player

from . import letters

MAX_TEXT = 1_000  # characters
#: The book for users without a guild; it does not exist.
NOBODYS_BOOK = "guild:none"


class MateField(EntryChoiceField):
    """
    A member of the same guild, found by name; cleans to a user. The book of the guild offers names, and recognises
    other spellings. The database decides whether the user is in the guild.
    """

    def to_python(self, value: Any) -> User | None:
        if value in self.empty_values:
            return None
        if exact := self._called(str(value)):
            return exact
        try:
            found: User | None = super().to_python(value)  # type: ignore[assignment]
        except ValidationError as error:
            if error.code == "ambiguous":
                raise
            raise ValidationError(self.error_messages["invalid_choice"], code="invalid_choice") from None
        return found

    def _called(self, name: str) -> User | None:
        found: User | None = self.queryset.filter(username=name).first() if "\0" not in name else None  # type: ignore[union-attr]
        return found


class LetterForm(forms.Form):
    """The recipient and the message. Thanks to the hidden id, a form that is sent twice is one message."""

    text = forms.CharField(
        label="Message", max_length=MAX_TEXT, widget=forms.Textarea(attrs={"rows": 4}), required=False
    )
    picture = forms.URLField(
        label="Link to a picture, if you like",
        required=False,
        max_length=500,
        assume_scheme="https",
        validators=[URLValidator(schemes=["https", "http"])],
    )
    client_id = forms.RegexField(r"\A[0-9a-f]{32}\Z", widget=forms.HiddenInput)

    def __init__(self, player: Player, data: QueryDict | None = None, *, to: str | None = None) -> None:
        initial = {"client_id": secrets.token_hex(16), "to": to}
        super().__init__(data, initial=initial, label_suffix="")
        to_whom = MateField(
            letters.mates_of(player),
            book=letters.GuildMates().book(str(player.user_id)) or NOBODYS_BOOK,
            contacts=reverse("guilds:contacts"),
            label="To",
            help_text="A member of your guild.",
            error_messages={"invalid_choice": "You can write only to members of your guild."},
        )
        self.fields = {"to": to_whom, **self.fields}

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if not self.errors and not given["text"] and not given["picture"]:
            raise forms.ValidationError("Write something, or give a link to a picture.")
        return given
