"""Staff with and without permission, and a project of two admin sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import override_settings


@pytest.fixture(autouse=True, scope="module")
def two_sites() -> Iterator[None]:
    with override_settings(ROOT_URLCONF="tests.admin.urls"):
        yield


@pytest.fixture
def staff(db: None) -> Callable[..., Client]:
    """staff("view_queue") is a client whose user may do that and nothing else."""

    def logged_in(*codenames: str) -> Client:
        user = User.objects.create_user(f"staff {codenames}", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client = Client()
        client.force_login(user)
        return client

    return logged_in


@pytest.fixture
def viewer(staff: Callable[..., Client]) -> Client:
    return staff("view_queue", "view_arguments_queue")


@pytest.fixture
def onlooker(staff: Callable[..., Client]) -> Client:
    """Staff that may look at queues, and not at what tasks are called with."""
    return staff("view_queue")


@pytest.fixture
def operator(staff: Callable[..., Client]) -> Client:
    return staff("change_queue")


@pytest.fixture
def remover(staff: Callable[..., Client]) -> Client:
    return staff("view_queue", "view_arguments_queue", "delete_queue")


@pytest.fixture
def stranger(staff: Callable[..., Client]) -> Client:
    return staff()
