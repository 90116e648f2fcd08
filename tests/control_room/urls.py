"""The default admin site, one of a project's own that takes the same pages, and views that need Redis."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path

from components import models
from components.admin import (
    AddressBookAdmin,
    CachedRowAdmin,
    ChatAdmin,
    CounterAdmin,
    LockAdmin,
    LogJobAdmin,
    MailboxAdmin,
    OverviewAdmin,
    QueueAdmin,
    SemaphoreAdmin,
)
from components.services.queues import TaskQueue

operations = admin.AdminSite(name="operations")
operations.register(models.Queue, QueueAdmin)
operations.register(models.AddressBook, AddressBookAdmin)
operations.register(models.CachedRow, CachedRowAdmin)
operations.register(models.Chat, ChatAdmin)
operations.register(models.Counter, CounterAdmin)
operations.register(models.Lock, LockAdmin)
operations.register(models.LogJob, LogJobAdmin)
operations.register(models.Mailbox, MailboxAdmin)
operations.register(models.Overview, OverviewAdmin)
operations.register(models.Semaphore, SemaphoreAdmin)


def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(TaskQueue().names())


async def async_view(request: HttpRequest) -> HttpResponse:
    return view(request)


def nonce(request: HttpRequest) -> dict[str, str]:
    """A context processor, as a project with a nonce in its policy has one."""
    return {"csp_nonce": "abc"}


urlpatterns = [
    path("admin/", admin.site.urls),
    path("operations/", operations.urls),
    path("view/", view),
    path("async-view/", async_view),
]
