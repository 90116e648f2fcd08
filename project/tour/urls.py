"""The addresses of the tour, which settings.TOUR adds to those of the demo."""

from django.urls import path

from . import views

app_name = "tour"

urlpatterns = [
    path("", views.shows, name="shows"),
    path("trace/", views.trace, name="trace"),
    path("mails/", views.mails, name="mails"),
    path("log-in/", views.log_in, name="log-in"),
    path("start-again/", views.start_again, name="start-again"),
    path("shows/<slug:name>/", views.show, name="show"),
]
