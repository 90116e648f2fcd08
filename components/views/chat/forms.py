"""The forms of the chat page that have fields of their own."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from components.people import people
from components.services.chat import ChatSettings

LONGEST_TITLE = 200  # characters


def found(names: str, by: str) -> list[str]:
    """
    The ids of those whose user names stand in *names*, with commas or blanks between. Raises ValidationError.

    Who may not be written to is not told from who does not exist.
    """
    wanted = [name for name in re.split(r"[\s,;]+", names.replace("@", " ")) if name]
    if not wanted:
        raise forms.ValidationError("Give at least one user name.")
    ids = people().find(wanted)
    refused = people().refused(by, ids.values())
    if missing := [name for name in wanted if name not in ids or ids[name] in refused]:
        raise forms.ValidationError(
            f"There is nobody of this name to whom you may write: {', '.join(missing)[:200]}."
        )
    return list(dict.fromkeys(ids[name] for name in wanted))


class CreateForm(forms.Form):
    """A new chat. *key* is the same for a form that is sent twice, which makes one chat."""

    members = forms.CharField(
        label="With whom",
        max_length=4_000,
        help_text="User names, with commas between them.",
        widget=forms.TextInput({"autocapitalize": "none", "autocomplete": "off", "spellcheck": "false"}),
    )
    title = forms.CharField(
        label="Title",
        required=False,
        max_length=LONGEST_TITLE,
        help_text="Without one it is named after its members.",
    )
    text = forms.CharField(
        label="First message",
        required=False,
        max_length=ChatSettings.max_text,
        widget=forms.Textarea({"rows": 3}),
        help_text="You can leave it out.",
    )
    key = forms.RegexField(r"\A[A-Za-z0-9_-]{8,64}\Z", widget=forms.HiddenInput)

    def __init__(self, me: str, data: Any = None, **options: Any) -> None:
        super().__init__(data, label_suffix="", **options)
        self._me = me

    def clean_members(self) -> list[str]:
        return [id for id in found(self.cleaned_data["members"], self._me) if id != self._me]
