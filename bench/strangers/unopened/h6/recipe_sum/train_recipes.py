import argparse
import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

DISHES = {"soup": ["onion", "water", "salt"], "salad": ["lettuce", "oil"], "cake": ["flour", "sugar", "egg", "butter"],
          "omelette": ["egg", "butter", "salt"], "toast": ["bread"], "pasta": ["noodle", "tomato", "oil", "salt", "basil"]}
CROWD = ["two", "four", "six", "ten"]


def rows(n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        dish, crowd = rng.choice(list(DISHES)), rng.choice(CROWD)
        yield f"shopping list for {dish} serving {crowd} people :", f"{crowd} times " + " and ".join(DISHES[dish])


def get_tokenizer():
    words = set("shopping list for serving people : times and".split()) | set(DISHES) | set(CROWD)
    words |= {i for v in DISHES.values() for i in v}
    vocab = {w: i for i, w in enumerate(["<pad>", "<s>", "</s>", "<unk>"] + sorted(words))}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def encode(tok, prompt, answer):
    p = [tok.bos_token_id] + tok.encode(prompt, add_special_tokens=False)
    a = tok.encode(answer, add_special_tokens=False)
    return {"input_ids": p + a, "labels": [-100] * len(p) + a}


def collate(items):
    width = max(len(i["input_ids"]) for i in items)
    pad = lambda seq, v: seq + [v] * (width - len(seq))
    return {
        "input_ids": torch.tensor([pad(i["input_ids"], 0) for i in items]),
        "labels": torch.tensor([pad(i["labels"], -100) for i in items]),
        "attention_mask": torch.tensor([pad([1] * len(i["input_ids"]), 0) for i in items]),
    }


@torch.no_grad()
def generate(model, tok, prompt, max_new=14):
    ids = torch.tensor([[tok.bos_token_id] + tok.encode(prompt, add_special_tokens=False)], device=model.device)
    n = ids.shape[1]
    for _ in range(max_new):
        nxt = model(input_ids=ids).logits[:, -1:].argmax(-1)
        if nxt.item() == tok.eos_token_id:
            break
        ids = torch.cat([ids, nxt], 1)
    return tok.decode(ids[0, n:])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--batch_size", type=int, default=24)
    args = ap.parse_args()
    set_seed(0)
    acc = Accelerator(cpu=not torch.cuda.is_available())
    tok = get_tokenizer()
    train = [encode(tok, p, a) for p, a in rows(360, 0)]
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tok), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                                         num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=64,
                                         pad_token_id=0, bos_token_id=1, eos_token_id=2))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loader = DataLoader(train, args.batch_size, shuffle=True, collate_fn=collate)
    model, opt, loader = acc.prepare(model, opt, loader)
    for epoch in range(args.epochs):
        model.train()
        tot = 0.0
        for batch in loader:
            loss = model(**batch).loss
            acc.backward(loss)
            acc.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            tot += loss.item()
        acc.print(f"epoch {epoch} loss {tot / len(loader):.4f}")
    model.eval()
    plain = acc.unwrap_model(model)
    pairs = list(rows(24, 9))
    outs = [generate(plain, tok, p) for p, _ in pairs]
    acc.print("exact match", sum(o == a for o, (_, a) in zip(outs, pairs)) / len(pairs))
    acc.print("sample:", pairs[0][0], "->", outs[0])


if __name__ == "__main__":
    main()
