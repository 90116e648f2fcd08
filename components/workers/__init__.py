"""
The long-running loops: base.py has the loop that all share, each other module one worker with its tick().
"""
