"""Two admins of the table of names, and the HTTP API."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin import AdminSite, ModelAdmin
from django.urls import include, path

from benchmarks.shop.models import Letter, Person


class Plain(ModelAdmin):
    """The admin as its documentation shows it, which searches all names."""

    search_fields = ["name"]
    ordering = ["name"]


class Indexed(ModelAdmin):
    """The fastest way that Django offers: a column of search keys, and an index for LIKE."""

    search_fields = ["key__startswith"]
    ordering = ["key"]


class Writing(ModelAdmin):
    autocomplete_fields = ["to"]


def site(name: str, persons: type[ModelAdmin]) -> AdminSite:
    made = AdminSite(name)
    made.register(Person, persons)
    made.register(Letter, Writing)
    return made


plain, indexed = site("plain", Plain), site("indexed", Indexed)

urlpatterns = [
    path("admin/", admin.site.urls),  # for redirects to the log-in page
    path("plain/", plain.urls),
    path("indexed/", indexed.urls),
    path("", include("components.urls")),
]
