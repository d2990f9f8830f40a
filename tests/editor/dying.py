"""Start of a program with an editor that is killed at a given call of a function of ``os``."""

DYING_EDITOR = """
import os, sys
from oh_jupyter.editor import FileEditor
history, workspace, calls, deadly, *rest = sys.argv[1:]
editor = FileEditor(workspace, history_dir=history)
real = getattr(os, deadly)
left = int(calls)
def dies(*args, **more):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    return real(*args, **more)
"""
