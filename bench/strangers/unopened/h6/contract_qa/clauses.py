import random

TERMS = "rent deposit notice repair insurance parking heating pets".split()
VALUES = "monthly yearly forbidden allowed shared waived fixed variable".split()
KINDS = ["lease", "sublease"]
FILL = "the parties hereby agree that under this contract and without prejudice to any other clause it holds".split()


def contracts(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        kind = rng.randrange(2)
        facts = {t: VALUES[(TERMS.index(t) + 3 * kind) % 8] for t in rng.sample(TERMS, rng.choice([2, 4, 5]))}
        text = []
        for t, v in facts.items():
            text += rng.sample(FILL, 5) + [t, "is", v, "."]
        ask = rng.choice(list(facts))
        rows.append((" ".join(text) + f" question : in this {KINDS[kind]} what about {ask} ? answer :", f"{ask} is {facts[ask]} [end]"))
    return rows
