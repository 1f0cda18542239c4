PAD, BOS, EOS = 0, 1, 2
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-., "
IDX = {c: i + 3 for i, c in enumerate(LETTERS)}
CHR = {i: c for c, i in IDX.items()}
SIZE = len(IDX) + 3


def encode(text, bos=False, eos=False):
    ids = [IDX[c] for c in text.lower()]
    if bos:
        ids = [BOS] + ids
    if eos:
        ids = ids + [EOS]
    return ids


def decode(ids):
    out = []
    for i in ids:
        if i == EOS:
            break
        if i > EOS:
            out.append(CHR[i])
    return "".join(out)
