"""The page that shows where the game is played; it is open to everybody."""

from django.urls import path

from . import views

app_name = "players"

urlpatterns = [path("players/", views.today, name="today")]
