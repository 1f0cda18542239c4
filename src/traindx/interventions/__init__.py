"""Changes to a training program while it runs, for experiments; its files stay as they are.

Runs inside the copy of the user's program, loaded by path as the recorder is: standard library and
torch only.
"""
