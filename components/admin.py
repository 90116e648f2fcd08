"""
The control room: pages of Django's admin for what is in Redis.

Each service has its own pages; control_room/ has what they share. They are registered with the default site; for
another AdminSite, use site.register(Queue, QueueAdmin).
"""

from django.contrib import admin

from components import models
from components.overview.page import OverviewAdmin
from components.services.autocomplete.admin.address_books import AddressBookAdmin
from components.services.chat.admin.chats import ChatAdmin
from components.services.counters.admin.counters import CounterAdmin
from components.services.locks.admin import LockAdmin
from components.services.logs.admin.logs import LogJobAdmin
from components.services.mailboxes.admin import MailboxAdmin
from components.services.queues.admin.queues import QueueAdmin
from components.services.rates.admin import RateLimitAdmin
from components.services.rows.admin.rows import CachedRowAdmin
from components.services.semaphores.admin import SemaphoreAdmin

__all__ = [
    "AddressBookAdmin",
    "CachedRowAdmin",
    "ChatAdmin",
    "CounterAdmin",
    "LockAdmin",
    "LogJobAdmin",
    "MailboxAdmin",
    "OverviewAdmin",
    "QueueAdmin",
    "RateLimitAdmin",
    "SemaphoreAdmin",
]

admin.site.register(models.AddressBook, AddressBookAdmin)
admin.site.register(models.CachedRow, CachedRowAdmin)
admin.site.register(models.Chat, ChatAdmin)
admin.site.register(models.Counter, CounterAdmin)
admin.site.register(models.Lock, LockAdmin)
admin.site.register(models.LogJob, LogJobAdmin)
admin.site.register(models.Mailbox, MailboxAdmin)
admin.site.register(models.Overview, OverviewAdmin)
admin.site.register(models.Queue, QueueAdmin)
admin.site.register(models.RateLimit, RateLimitAdmin)
admin.site.register(models.Semaphore, SemaphoreAdmin)
