import sys

import torch

from model import Conf, ConvLM

ck = torch.load(sys.argv[1] if len(sys.argv) > 1 else "/tmp/w3_convlm.pt", map_location="cpu")
chars = ck["chars"]
model = ConvLM(Conf(**ck["conf"]))
model.load_state_dict(ck["weights"])
model.eval()

torch.manual_seed(1)
idx = torch.tensor([[chars.index("\n")]])
with torch.no_grad():
    for _ in range(200):
        p = model(idx[:, -32:])[:, -1].softmax(-1)
        idx = torch.cat([idx, torch.multinomial(p, 1)], 1)
print("".join(chars[i] for i in idx[0]))
