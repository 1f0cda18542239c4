import random

import torch
from torch import nn
from torch.utils.data import DataLoader

from router import QUEUES, RouterNet, TicketRouter
from textpipe import TicketSet, Vocabulary

TOPICS = {
    "billing": "invoice charged refund card payment VAT subscription".split(),
    "login": "password reset locked account code MFA email".split(),
    "shipping": "parcel courier late tracking address DHL delivered".split(),
}
OPENERS = ["Hello,", "Hi team!", "URGENT:", "Good morning,", "Dear support -"]
NOISE = "my the is since days please help order number still with".split()


def tickets(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        label = rng.randrange(3)
        words = rng.choices(TOPICS[QUEUES[label]], k=2) + rng.choices(NOISE, k=6)
        words += rng.choices([w for t in TOPICS.values() for w in t], k=1)
        rng.shuffle(words)
        styled = [rng.choice([w, w.capitalize(), w.upper(), w + ","]) for w in words]
        rows.append((f"{rng.choice(OPENERS)} {' '.join(styled)} #{rng.randint(100, 9999)}", label))
    return rows


torch.manual_seed(2)
train_rows, val_rows, live_rows = tickets(600, 1), tickets(150, 2), tickets(150, 3)
vocab = Vocabulary([t for t, _ in train_rows])
train_loader = DataLoader(TicketSet(train_rows, vocab), batch_size=32, shuffle=True)
val_loader = DataLoader(TicketSet(val_rows, vocab), batch_size=150)

net = RouterNet(len(vocab))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(6):
    net.train()
    for ids, label in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(ids), label)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        good = sum((net(ids).argmax(1) == label).sum().item() for ids, label in val_loader)
    print(f"epoch {epoch} loss {loss.item():.3f} val acc {good / len(val_rows):.3f}")

router = TicketRouter(net, vocab)
answers = router([text for text, _ in live_rows])
hits = sum(a == QUEUES[label] for a, (_, label) in zip(answers, live_rows))
print(f"live tickets routed correctly: {hits}/{len(live_rows)}")
