"""Autocomplete: a person's recent contacts, and the names in large address books, found by prefix."""

# Read address_book.py, folding.py, lua/complete.lua first, then models.py and feeding.py, then forms.py.

from components.services.autocomplete.address_book import AddressBook, AddressBookReader
from components.services.autocomplete.contacts import RecentContacts
from components.services.autocomplete.facts import BookInfo, Completions, Contact, Entry, RankedEntry
from components.services.autocomplete.folding import finds, fold

__all__ = [
    "AddressBook",
    "AddressBookReader",
    "BookInfo",
    "Completions",
    "Contact",
    "Entry",
    "RankedEntry",
    "RecentContacts",
    "finds",
    "fold",
]
