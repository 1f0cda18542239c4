"""The same recording from inside a framework's trainer; one module per framework."""
