"""Where noise begins differs from model to model, so it is measured with a shipped set of questions (pitfall P13).

One rule: a floor lets the true pairs through first and keeps noise out second.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from memory.ports import Vector

PROBE: Final[tuple[tuple[str, str], ...]] = (
    ("Where did I park the car?", "The car is on the second level of the garage behind the theatre."),
    ("Which instrument is Clara learning?", "Clara has cello lessons every Tuesday after school."),
    ("Why can't we drink milk at breakfast?", "My wife is lactose intolerant, so we buy oat drink."),
    ("Who waters the plants while we are away?", "Our neighbour Mr Novak has a key and looks after the balcony."),
    ("How much is the rent?", "The flat costs 940 euros a month including heating."),
    ("Was bekommt Jonas zum Geburtstag?", "Für Jonas ist ein Teleskop bestellt, er wird im März zwölf."),
    ("Wann fährt der Zug nach Wien?", "Die Abfahrt am Samstag ist um 7:42 Uhr von Gleis 9."),
    ("Mit wem war ich essen?", "Gestern Abend saß ich mit meiner Chefin im vietnamesischen Restaurant."),
    ("Welche Sportart treibt meine Schwester?", "Lena klettert zweimal in der Woche in der Halle."),
    ("Wo liegen die Reisepässe?", "Alle Ausweise sind in der blauen Mappe in der untersten Schublade."),
    ("Как зовут моего врача?", "Терапевт, к которому я хожу, — доктор Орлова из поликлиники на Садовой."),
    ("Что нужно купить для ремонта?", "Для ванной не хватает плитки и двух вёдер белой краски."),
    ("Когда у родителей годовщина?", "Мама и папа поженились двадцатого сентября, в этом году будет сорок лет."),
    ("Какую книгу мне советовали?", "Коллега очень хвалил новый роман о полярниках."),
    ("Почему я плохо сплю?", "Последние недели болит спина, и по ночам я часто просыпаюсь."),
)
"""Questions a person asks, each with the remembered sentence that answers it; few words in common, three languages."""

_GOLD_LOST: Final = 0.05
_NOISE_CUT: Final = 0.75
_LOWEST: Final = 0.05


def calibrate_floor(questions: Sequence[Vector], answers: Sequence[Vector]) -> float:
    """Return the floor for a model from its vectors of the probe, both in the probe's order.

    It cuts three quarters of the wrong pairs, or fewer where that would lose more than one true pair in twenty.
    """
    cosines = np.stack(questions) @ np.stack(answers).T
    is_true = np.eye(len(cosines), dtype=bool)
    floor = min(np.quantile(cosines[is_true], _GOLD_LOST), np.quantile(cosines[~is_true], _NOISE_CUT))
    return round(max(float(floor), _LOWEST), 3)
