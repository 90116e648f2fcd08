"""The forms of the chat page that have fields of their own."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.kit.validation import is_blank
from components.services.chat import ChatSettings
from components.services.chat.page.names import NamesField

LONGEST_TITLE = 200  # characters


def checked_title(title: str) -> str:
    """Return *title* if it is valid. Raises ValidationError."""
    if len(title) > LONGEST_TITLE or not title.isprintable() or (title and is_blank(title)):
        raise forms.ValidationError(
            gettext("A title has at most %(count)s characters, all of them printable.")
            % {"count": LONGEST_TITLE}
        )
    return title


class CreateForm(forms.Form):
    """The form for a new chat. *key* makes sure that a form sent twice creates one chat."""

    members = NamesField(label=_("With whom"), help_text=_("User names, with commas between them."))
    title = forms.CharField(
        label=_("Title"), required=False, help_text=_("Without one it is named after its members.")
    )
    text = forms.CharField(
        label=_("First message"),
        required=False,
        max_length=ChatSettings.max_text,
        widget=forms.Textarea({"rows": 3}),
        help_text=_("You can leave it out."),
    )
    key = forms.RegexField(r"\A[A-Za-z0-9_-]{8,64}\Z", widget=forms.HiddenInput)

    def __init__(self, me: str, data: Any = None, **options: Any) -> None:
        super().__init__(data, label_suffix="", **options)
        self._me = me
        _asked_by(self.fields["members"], me)

    def clean_title(self) -> str:
        return checked_title(self.cleaned_data["title"])

    def clean_members(self) -> list[str]:
        return [id for id in self.cleaned_data["members"] if id != self._me]


class InviteForm(forms.Form):
    """The form for adding people to a chat."""

    names = NamesField(label=_("Add by user name"))

    def __init__(self, me: str, data: Any = None, **options: Any) -> None:
        super().__init__(data, auto_id="add-%s", label_suffix="", **options)
        _asked_by(self.fields["names"], me)


def _asked_by(field: forms.Field, me: str) -> None:
    assert isinstance(field, NamesField)
    field.asked_by(me)
