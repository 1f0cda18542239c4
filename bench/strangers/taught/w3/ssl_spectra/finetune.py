"""Few-label evaluation: 5 spectra per mineral on top of the contrastive weights."""
import torch
import torch.nn.functional as F

from nets import Classifier
from spectra import sample


def load_pretrained(model, path):
    state = torch.load(path, map_location="cpu")["model"]
    # the projector is thrown away and the head is new, hence not strict
    state = {k: v for k, v in state.items() if not k.startswith("projector.")}
    model.load_state_dict(state, strict=False)
    return model


def main(path="/tmp/w3_simclr.pt"):
    torch.manual_seed(0)
    x, y = sample(600, seed=2)
    few = torch.cat([torch.where(y == k)[0][:5] for k in range(8)])
    xt, yt = sample(500, seed=3)

    model = load_pretrained(Classifier(8), path)
    opt = torch.optim.Adam([{"params": model.backbone.parameters(), "lr": 1e-4},
                            {"params": model.head.parameters(), "lr": 1e-2}])
    for ep in range(40):
        model.train()
        for idx in torch.randperm(len(few)).split(20):
            b = few[idx]
            loss = F.cross_entropy(model(x[b]), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if ep % 10 == 9:
            model.eval()
            with torch.no_grad():
                acc = (model(xt).argmax(1) == yt).float().mean().item()
            print(f"finetune {ep} loss {loss.item():.3f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
