# Práctica 3: clasificar nombres inventados según su "idioma"
# Una RNN hecha a mano (sin nn.Module) para entender bien qué pasa por dentro.
import random

import torch
import torch.nn.functional as F

random.seed(7)
torch.manual_seed(7)

LETRAS = "abcdefghijklmnopqrstuvwxyz"
SILABAS = {
    "norte": ["sk", "ald", "bjor", "rik", "hel", "vik", "torn"],
    "sur": ["ma", "lo", "ria", "ca", "sita", "no", "ela"],
    "este": ["zho", "xin", "ling", "qua", "wei", "shen", "yao"],
}
IDIOMAS = list(SILABAS)


def inventar(idioma):
    nombre = "".join(random.choice(SILABAS[idioma]) for _ in range(random.randint(2, 3)))
    # un poco de ruido: a veces se cambia una letra
    if random.random() < 0.4:
        k = random.randrange(len(nombre))
        nombre = nombre[:k] + random.choice(LETRAS) + nombre[k + 1:]
    return nombre


def construir_datos(n):
    vistos = {}
    while len(vistos) < n:
        idioma = random.choice(IDIOMAS)
        vistos.setdefault(inventar(idioma), IDIOMAS.index(idioma))
    return list(vistos.items())


def a_tensor(nombre):
    idx = torch.tensor([LETRAS.index(c) for c in nombre])
    return F.one_hot(idx, len(LETRAS)).float()


datos = construir_datos(500)
random.shuffle(datos)
entrenamiento, prueba = datos[:400], datos[400:]

# ---- los parámetros de la red ----
OCULTO = 32
Wxh = (torch.randn(len(LETRAS), OCULTO) * 0.1).requires_grad_()
Whh = (torch.randn(OCULTO, OCULTO) / OCULTO ** 0.5 * 0.7).requires_grad_()
bh = torch.zeros(OCULTO, requires_grad=True)
Why = (torch.randn(OCULTO, len(IDIOMAS)) * 0.1).requires_grad_()
by = torch.zeros(len(IDIOMAS), requires_grad=True)
parametros = [Wxh, Whh, bh, Why, by]


def red(nombre):
    h = torch.zeros(OCULTO)
    for x in a_tensor(nombre):
        h = torch.tanh(x @ Wxh + h @ Whh + bh)
    return h @ Why + by


def entrenar_un_nombre(nombre, etiqueta, tasa):
    salida = red(nombre)
    perdida = F.cross_entropy(salida.unsqueeze(0), torch.tensor([etiqueta]))
    perdida.backward()
    # descenso por gradiente: restamos el gradiente multiplicado por la tasa
    with torch.no_grad():
        for p in parametros:
            p -= tasa * p.grad
    return perdida.item()


def precision(pares):
    aciertos = 0
    with torch.no_grad():
        for nombre, etiqueta in pares:
            aciertos += int(red(nombre).argmax().item() == etiqueta)
    return aciertos / len(pares)


TASA = 0.03
for vuelta in range(4):
    random.shuffle(entrenamiento)
    total = 0.0
    for nombre, etiqueta in entrenamiento:
        total += entrenar_un_nombre(nombre, etiqueta, TASA)
    print(f"vuelta {vuelta + 1}: pérdida media {total / len(entrenamiento):.3f}, "
          f"precisión en entrenamiento {precision(entrenamiento):.2f}")

print("precisión en prueba:", round(precision(prueba), 3))
