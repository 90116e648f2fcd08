"""The default admin site, and one of a project's own that takes the same pages."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from components.admin import QueueAdmin
from components.models import Queue

operations = admin.AdminSite(name="operations")
operations.register(Queue, QueueAdmin)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("operations/", operations.urls),
]
