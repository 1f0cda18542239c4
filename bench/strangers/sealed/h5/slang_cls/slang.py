# -*- coding: utf-8 -*-
"""Course project: is a message slang or formal? char n-gram hashing + embedding bag."""

import random
import zlib
import torch
import torch.nn as nn

random.seed(1); torch.manual_seed(1)
device = 'cuda' if torch.cuda.is_available() else 'cpu'
use_amp = True

# In[1]: data
SLANG = "lol omg brb gonna wanna yeah nah dude lit vibe bruh sus lowkey ngl fr yall".split()
FORMAL = "therefore regarding sincerely hereby kindly however moreover pursuant furthermore accordingly".split()
COMMON = "the a we you meeting today food house send please time work see know it is to and for".split()

def message(kind):
    words = random.choices(COMMON, k=random.randint(4, 9))
    for _ in range(random.randint(1, 2)):
        w = random.choice(SLANG if kind == 1 else FORMAL)
        if random.random() < 0.2:
            w = w[:-1]
        words.insert(random.randrange(len(words)), w)
    return ' '.join(words)

labels = [random.randint(0, 1) for _ in range(1500)]
texts = [message(k) for k in labels]

# In[2]: hashing of character trigrams
BUCKETS = 2048

def featurize(text):
    text = ' ' + text + ' '
    return [zlib.crc32(text[i:i + 3].encode()) % BUCKETS for i in range(len(text) - 2)]

def collate(rows):
    flat, offsets = [], []
    for r in rows:
        offsets.append(len(flat))
        flat += featurize(texts[r])
    y = torch.tensor([labels[r] for r in rows], dtype=torch.float32)
    return torch.tensor(flat).to(device), torch.tensor(offsets).to(device), y.to(device)

# In[3]: model
class SlangNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, 32, mode='mean')
        self.fc1 = nn.Linear(32, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, flat, offsets):
        h = self.bag(flat, offsets)
        return self.fc2(torch.relu(self.fc1(h))).squeeze(1)

model = SlangNet().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
criterion = nn.BCEWithLogitsLoss()
scaler = torch.amp.GradScaler(device, enabled=use_amp)

# In[4]: training
def learn(loss):
    optimizer.zero_grad()
    scaler.scale(loss)
    loss.backward()
    scaler.step(optimizer)
    scaler.update()

def test(rows):
    model.eval()
    with torch.no_grad():
        f, o, y = collate(rows)
        return ((model(f, o) > 0).float() == y).float().mean().item()

train_rows, test_rows = list(range(1200)), list(range(1200, 1500))
for epoch in range(8):
    model.train()
    random.shuffle(train_rows)
    running = 0
    for i in range(0, 1200, 40):
        f, o, y = collate(train_rows[i:i + 40])
        with torch.autocast(device, dtype=torch.bfloat16, enabled=use_amp):
            out = model(f, o)
        loss = criterion(out.float(), y)
        learn(loss)
        running += loss.item()
    print('epoch', epoch, 'loss %.4f' % (running / 30), 'test acc %.3f' % test(test_rows))
