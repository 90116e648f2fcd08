"""People who ask, and how they do it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import AsyncClient

PROBLEM = "application/problem+json"


class Asker:
    """Asks the API as a person in a session, under ASGI; answers in parsed JSON."""

    def __init__(self, user: User | None = None, **defaults: Any) -> None:
        self.client = AsyncClient(**defaults)
        self.id = "" if user is None else str(user.pk)
        if user is not None:
            self.client.force_login(user)

    def __call__(
        self, method: str, path: str, content: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> Any:
        return async_to_sync(self.ask)(method, path, content, raw=raw, **headers)

    async def ask(
        self, method: str, path: str, content: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> Any:
        body = raw if raw is not None else b"" if content is None else json.dumps(content).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = names.pop("Content-Type", "application/json" if body else "")
        response = await self.client.generic(method, f"/api/{path}", body, content_type=kind, headers=names)
        may_be_kept = path.startswith(("books/", "contacts")) and response.status_code in (200, 304)
        assert response["Cache-Control"].startswith("private" if may_be_kept else "no-store")
        return response


def problem(response: Any, status: int, kind: str) -> Mapping[str, Any]:
    """That *response* tells a problem of this kind, and its parts."""
    told: dict[str, Any] = json.loads(response.content)
    assert (response.status_code, told["type"]) == (status, f"/api/problems/{kind}"), told
    assert response["Content-Type"] == PROBLEM
    assert told["status"] == status
    assert told["title"]
    assert told["detail"]
    return told


def user(name: str) -> User:
    return User.objects.create_user(name)


@pytest.fixture
def joe(db: None) -> Asker:
    return Asker(user("joe"))


@pytest.fixture
def jill(db: None) -> Asker:
    return Asker(user("jill"))


@pytest.fixture
def stranger(db: None) -> Asker:
    return Asker(user("stranger"))


@pytest.fixture
def nobody(db: None) -> Asker:
    return Asker()
