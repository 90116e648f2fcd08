"""
The chat page: pages.py (list, conversation, a new chat), members.py and search.py, by links and forms; and the badge
for other pages.

rows.py makes the rows for the templates, texts.py the sentences. With scripts (static/components/chat/), the page
uses the HTTP API.
"""
