"""The pages of guilds; changes need POST."""

from django.urls import path

from . import views

app_name = "guilds"

urlpatterns = [
    path("guild/", views.guild, name="guild"),
    path("mail/", views.mail, name="mail"),
    path("mail/contacts/", views.contacts, name="contacts"),
    path("mail/read/", views.read, name="read"),
]
