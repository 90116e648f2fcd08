"""The page that shows who plays where; everybody may look."""

from django.urls import path

from . import views

app_name = "players"

urlpatterns = [path("players/", views.today, name="today")]
