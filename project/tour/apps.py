from __future__ import annotations

from django.apps import AppConfig


class TourConfig(AppConfig):
    name = "project.tour"
