"""
The market of Fake Game: players list items for sale and buy them. An ordinary app that uses components.

models.py    what is stored, and what the database itself forbids
ledger.py    the transactions: one function per thing that can happen, all or nothing
trading.py   what the pages call: a ledger transaction under the lock of its item, and the tasks that follow from it
tasks.py     what happens later: mail, openings, endings, and the sweep that makes lost tasks good
"""
