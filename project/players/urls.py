"""The page of who plays where; whoever may come in may look."""

from django.urls import path

from . import views

app_name = "players"

urlpatterns = [path("players/", views.today, name="today")]
