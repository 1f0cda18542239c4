"""Recogniser as used by the demo box; run train.py first."""
import torch

from corpus import WORDS, make
from features import logmel
from model import KWS


class Recogniser:
    def __init__(self, path="/tmp/w3_kws.pt"):
        self.net = KWS()
        self.net.load_state_dict(torch.load(path, map_location="cpu"))
        self.net.eval()

    @torch.inference_mode()
    def __call__(self, wave):
        feat = logmel(wave)
        prob = self.net(feat.unsqueeze(0)).softmax(-1)[0]
        k = int(prob.argmax())
        return WORDS[k], float(prob[k])


if __name__ == "__main__":
    rec = Recogniser()
    waves, labels = make(60, 99)
    ok = 0
    for w, k in zip(waves, labels):
        word, conf = rec(w)
        ok += word == WORDS[k]
    print(f"{ok} of {len(waves)} words recognised")
