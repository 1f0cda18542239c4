"""What runs inside a program under test, in a peer's own environment.

`watch` is copied beside the program as `peer_watch`, one of the others as `peer_inside`; none of
them imports anything of this repository.
"""
