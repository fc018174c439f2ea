"""English sentences and their German translations, which pass all checks; for measurements with the scripted engine."""

from __future__ import annotations

import itertools

WHO = {
    "My sister": "Meine Schwester", "Our neighbour": "Unser Nachbar", "The teacher": "Der Lehrer",
    "Her brother": "Ihr Bruder", "Their boss": "Ihr Chef", "The farmer": "Der Landwirt", "His friend": "Sein Freund",
    "The doctor": "Die Ärztin",
}  # fmt: skip
WHAT = {
    "wants to do the shopping": "möchte einkaufen", "must call the station": "muss den Bahnhof anrufen",
    "can repair the car": "kann das Auto reparieren", "wants to read the letter": "möchte den Brief lesen",
    "must buy seven apples": "muss sieben Äpfel kaufen", "can play the guitar": "kann Gitarre spielen",
    "wants to visit the museum": "möchte das Museum besuchen", "must write a report": "muss einen Bericht schreiben",
}  # fmt: skip
SENTENCES = {
    f"{who} {what} before dinner tonight.": f"{wer} {was}, bevor es heute Abendessen gibt."
    for (who, wer), (what, was) in itertools.product(WHO.items(), WHAT.items())
}
"""More than any cache in the way remembers."""

LONG_SENTENCES = {
    f"{first[:-1]}, because {who.lower()} {what} early tomorrow morning.": (
        f"{erster[:-1]}, denn {wer.lower()} {was}, morgen früh schon, wie immer."
    )
    for (first, erster), (who, wer), (what, was) in itertools.product(
        SENTENCES.items(), WHO.items(), WHAT.items()
    )
}
"""The same with about 20 words, more than a server has in flight."""
