"""
The chat page: pages.py (list, conversation, a new chat) and members.py, by links and forms.

rows.py makes the rows for the templates, texts.py the sentences. With scripts (static/components/chat/), the page
uses the HTTP API.
"""
