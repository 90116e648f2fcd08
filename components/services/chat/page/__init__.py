"""
The chat page: pages.py (list, conversation, a new chat) and members.py, by links and forms.

rows.py makes what the templates print, texts.py says it in words. With scripts (static/components/chat/) the page
lives on the HTTP API.
"""
