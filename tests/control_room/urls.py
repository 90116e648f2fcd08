"""The default admin site, one of a project's own that takes the same pages, and views that need Redis."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path

from components.services.queues import TaskQueue

operations = admin.AdminSite(name="operations")
for model, its_admin in admin.site._registry.items():
    if model._meta.app_label == "components":
        operations.register(model, type(its_admin))


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
