"""
The guilds of Fake Game: players of a guild share a chat, and can write mail to each other.

models.py    which player is in which guild
chats.py     the chat of a guild, which follows its members
books.py     the names in each guild, which only its members may search
letters.py   mail by mailboxes, and the rule that refuses mail from outside the guild
"""
