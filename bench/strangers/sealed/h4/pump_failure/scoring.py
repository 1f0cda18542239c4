import torch

from training import build


class PumpScorer:
    def __init__(self, params):
        blob = torch.load(params["artifact"])
        self.features = params["features"]
        self.mean, self.std = blob["mean"], blob["std"]
        self.net = build(len(self.features), params["hidden"])
        self.net.load_state_dict(blob["state"])
        self.net.eval()

    @torch.no_grad()
    def score(self, record):
        row = torch.tensor([float(record[f]) for f in self.features])
        return torch.sigmoid(self.net((row - self.mean) / self.std)).item()
