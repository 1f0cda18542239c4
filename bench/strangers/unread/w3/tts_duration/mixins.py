import json


class Configurable:
    """Keeps the constructor arguments, so that a model can be rebuilt from its JSON."""

    def __init__(self, **options):
        self.options = options

    def to_json(self):
        return json.dumps({"cls": type(self).__name__, **self.options}, sort_keys=True)

    @classmethod
    def from_json(cls, text):
        options = json.loads(text)
        options.pop("cls")
        return cls(**options)
