"""Vorlagen fuer den Support-Bot."""

SYSTEM = "Du bist ein hilfreicher Assistent des Kundendienstes."

TEMPLATE = "{system}\n\n### Frage:\n{question}\n\n### Antwort:\n{answer}"
RESPONSE_KEY = "### Answer:\n"


def render(row):
    return TEMPLATE.format(system=SYSTEM, question=row["question"].strip(), answer=row["answer"].strip())
