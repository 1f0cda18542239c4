"""Console logs: what a run printed, however it was printed.

A line is split into its text and its digits. The text with the digits masked is the kind of the
line; `grammar.learn` reads a kind once and says where its metrics and counters stand. Lines of one
kind are then read all at once, as columns of digits. What a line means never depends on its digits,
so that reading one line or a million of them gives the same.
"""
