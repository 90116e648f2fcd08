"""may_view(): whether somebody may view a model in the admin, and so, by default, data derived from its rows."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import models


def may_view(user: str, model: type[models.Model]) -> bool:
    """Return whether the member of staff with the id *user* may view *model*."""
    try:
        found = get_user_model()._default_manager.filter(pk=user).first()
    except (ValueError, ValidationError):  # the id belongs to nobody
        return False
    if found is None or not found.is_active or not getattr(found, "is_staff", False):
        return False
    return found.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}")
