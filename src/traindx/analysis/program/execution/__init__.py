"""What a program does, found by following its source without running it."""
