"""
The market of Fake Game: players list items for sale and buy them. An ordinary app that uses components.

models.py    the tables, with constraints against impossible states
ledger.py    the transactions, one function each
trading.py   functions for the pages: a ledger transaction under the lock of its item, and the tasks that follow
tasks.py     later work: mail, openings, endings, and the sweep that replaces lost tasks
"""
