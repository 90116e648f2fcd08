"""Autocomplete: recent contacts of a person, and names in big address books by how they begin."""

from components.services.autocomplete.address_book import AddressBook
from components.services.autocomplete.contacts import RecentContacts
from components.services.autocomplete.facts import BookInfo, Completions, Contact, Entry, RankedEntry
from components.services.autocomplete.folding import fold
from components.services.autocomplete.reader import AddressBookReader
from components.services.autocomplete.usage import BookUsage, SlowSearch

__all__ = [
    "AddressBook",
    "AddressBookReader",
    "BookInfo",
    "BookUsage",
    "Completions",
    "Contact",
    "Entry",
    "RankedEntry",
    "RecentContacts",
    "SlowSearch",
    "fold",
]
