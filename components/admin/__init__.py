"""
The control room: pages of Django's admin over what lives in Redis, one module per pattern.

base.py holds what they share. They are registered with the default site; another AdminSite takes them
with site.register(Queue, QueueAdmin).
"""

from django.contrib import admin

from components.admin.queues import QueueAdmin
from components.models import Queue

__all__ = ["QueueAdmin"]

admin.site.register(Queue, QueueAdmin)
