"""What a player fills in to write to a member of the guild."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms
from django.core.validators import URLValidator
from django.http import QueryDict

from project.market.models import Player

from . import letters

MAX_TEXT = 1_000  # characters


class LetterForm(forms.Form):
    """To whom, and what. The hidden id makes that a form that is sent twice is one message."""

    to = forms.ModelChoiceField(
        queryset=Player.objects.none(),
        label="To",
        empty_label="Choose a member of your guild",
        error_messages={"invalid_choice": "You can write to members of your guild only."},
    )
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
        mates = [mate.pk for mate in letters.mates_of(player)]
        self.fields["to"].queryset = Player.objects.filter(pk__in=mates).select_related("user")  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if not self.errors and not given["text"] and not given["picture"]:
            raise forms.ValidationError("Write something, or give a link to a picture.")
        return given
