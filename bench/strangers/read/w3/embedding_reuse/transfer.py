import io

import torch
import torch.nn.functional as F

from encoders import Sentiment, TopicModel

VOCAB, LEN, TOPICS = 60, 14, 6


def documents(n, seed):
    g = torch.Generator().manual_seed(seed)
    topic = torch.randint(TOPICS, (n,), generator=g)
    base = 1 + topic[:, None] * 9 + torch.randint(9, (n, LEN), generator=g)
    noise = torch.randint(1, VOCAB, (n, LEN), generator=g)
    ids = torch.where(torch.rand(n, LEN, generator=g) < 0.6, base, noise)
    length = torch.randint(6, LEN + 1, (n, 1), generator=g)
    return ids * (torch.arange(LEN) < length), topic


def adapt(model, checkpoint):
    """Rename encoder.* to text.*, leave the topic head out, keep the new score layer as it is."""
    state = torch.load(checkpoint, weights_only=True)
    renamed = {k.replace("encoder.", "text.", 1): v for k, v in state.items() if k.startswith("encoder.")}
    missing, unexpected = model.load_state_dict(renamed, strict=False)
    if unexpected or set(missing) != {"score.weight", "score.bias"}:
        raise RuntimeError(f"checkpoint does not fit: missing {missing}, unexpected {unexpected}")


def train(model, x, y, criterion, epochs, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for _ in range(epochs):
        for i in torch.randperm(len(x)).split(32):
            opt.zero_grad()
            criterion(model(x[i]), y[i]).backward()
            opt.step()


def main():
    torch.manual_seed(33)
    x, topic = documents(1200, 0)
    topics = TopicModel(VOCAB, TOPICS)
    train(topics, x, topic, F.cross_entropy, epochs=4, lr=3e-3)
    file = io.BytesIO()
    torch.save(topics.state_dict(), file)
    file.seek(0)

    liked = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    xs, ts = documents(60, 1)
    xt, tt = documents(400, 2)
    for name, reuse in (("from scratch", False), ("from topics", True)):
        torch.manual_seed(34)
        model = Sentiment(VOCAB)
        if reuse:
            adapt(model, file)
        train(model, xs, liked[ts], F.binary_cross_entropy_with_logits, epochs=6, lr=2e-3)
        model.eval()
        with torch.no_grad():
            acc = ((model(xt) > 0).float() == liked[tt]).float().mean().item()
        print(f"{name}: {acc:.3f}")


if __name__ == "__main__":
    main()
