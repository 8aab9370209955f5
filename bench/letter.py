"""A letter in ten versions, each with what a person asked for, and the small talk between: the words of a session."""

TITLE = "Letter to the landlord"

_HEAD = "Dear Ms Krause,"
_COLD = """\
the heating in our flat on the third floor has not worked properly since the beginning of last week. The radiators in \
the two rooms towards the courtyard stay cold all day, and the one in the kitchen is lukewarm for an hour in the \
morning and then cools down again. I have bled all of them twice and turned every valve \
fully open, without any change."""
_MEASURED = """\
I have measured the temperature in the larger room three times a day. At seven in the morning it was between fourteen \
and fifteen degrees, at noon about sixteen, and in the evening it never rose above seventeen, although the windows \
were closed and the curtains drawn. Our younger child sleeps in that room and has had a cough for several days now."""
_CALLED = """\
I called the caretaker on Tuesday and again on Thursday. He was friendly and told me that the pump in the cellar had \
been making a noise for some time, and that a company would be asked to look at it. Nobody has come so far, and the \
neighbours on the second floor have told me that their flat is just as cold as ours."""
_ASK = """\
Please have the heating repaired by Friday, and let me know beforehand when somebody will come, so that one of us can \
be at home. Until then we would be glad of two electric heaters."""
_END = "Kind regards\nAda Byron"

_SINCE = _COLD.replace("since the beginning of last week", "since Monday, 2 November")
_SHORT_COLD = """\
the heating in our flat on the third floor has not worked properly since Monday, 2 November. The radiators towards the \
courtyard stay cold all day, and the one in the kitchen is lukewarm for an hour and then cools down again. Bleeding \
them and opening every valve has changed nothing."""
_TABLE = """\
These are the temperatures in the larger room, with windows closed and curtains drawn:

- at seven in the morning: 14 to 15 degrees
- at noon: about 16 degrees
- in the evening: at most 17 degrees

Our younger child sleeps in that room and has had a cough for several days now."""
_CALLED_DATES = _CALLED.replace("on Tuesday and again on Thursday", "on 3 November and again on 5 November")
_RENT = """\
A flat that cannot be heated in November is not in the condition that our contract promises. I therefore pay the rent \
for this month under reserve and keep the right to reduce it for the days on which the rooms could not be used as \
they should. I would much rather have a warm flat than a lower rent, and I hope that we need not speak of this again."""
_SOFT_RENT = """\
You will understand that a flat which cannot be heated in November is hard to live in, and that I pay the rent for \
this month under reserve. I would much rather have a warm flat than a lower rent."""
_ASK_DATE = _ASK.replace("by Friday", "by Friday, 13 November").replace(
    "two electric heaters.", "two electric heaters, whose electricity we would ask you to cover."
)
_ACCESS = """\
We are at home every day from five in the afternoon, and on Wednesday all day. The neighbour below, Mr Okafor, has a \
key to our flat and is glad to open the door at any other time; his number is on the board in the hall."""
_FULL_END = "Thank you for your help, and kind regards\nAda Byron\n14 Linden Street, third floor"


def _letter(*paragraphs: str) -> str:
    return "\n\n".join((_HEAD, *paragraphs))


DRAFTS = (
    (
        "Please write a letter to our landlord: the heating has been broken for a week.",
        _letter(_COLD, _MEASURED, _CALLED, _ASK, _END),
    ),
    ("Name the day since when: 2 November.", _letter(_SINCE, _MEASURED, _CALLED, _ASK, _END)),
    ("Put the temperatures into a short list.", _letter(_SINCE, _TABLE, _CALLED, _ASK, _END)),
    ("Give the dates of my calls too, the 3rd and the 5th.", _letter(_SINCE, _TABLE, _CALLED_DATES, _ASK, _END)),
    (
        "Add that I pay the rent under reserve.",
        _letter(_SHORT_COLD, _TABLE, _CALLED_DATES, _RENT, _ASK, _END),
    ),
    ("That sounds harsh. Say it more softly.", _letter(_SHORT_COLD, _TABLE, _CALLED_DATES, _SOFT_RENT, _ASK, _END)),
    (
        "The deadline needs a date, and ask them to pay for the electricity.",
        _letter(_SHORT_COLD, _TABLE, _CALLED_DATES, _SOFT_RENT, _ASK_DATE, _END),
    ),
    (
        "Say when we are at home, and that Mr Okafor has a key.",
        _letter(_SHORT_COLD, _TABLE, _CALLED_DATES, _ASK_DATE, _ACCESS, _END),
    ),
    (
        "Back to the sentence about the rent, but leave the calls out.",
        _letter(_SHORT_COLD, _TABLE, _SOFT_RENT, _ASK_DATE, _ACCESS, _END),
    ),
    (
        "Thank them at the end and put our address below.",
        _letter(_SHORT_COLD, _TABLE, _SOFT_RENT, _ASK_DATE, _ACCESS, _FULL_END),
    ),
)
"""What the person says, and the version that follows."""

KEEP = "Good, keep it like that."

SMALL_TALK = (
    (
        "How long does a kilo of potatoes keep?",
        (
            "In a cool, dark place for about two months; in a warm kitchen for two "
            "weeks. Take them out of the plastic bag, or they sprout early."
        ),
    ),
    (
        "What is a good present for a seven-year-old?",
        (
            "Something to build with, a book of riddles, or a torch of their "
            "own. A torch costs little and is used every evening."
        ),
    ),
    (
        "How far is it from Riga to Tallinn?",
        "About 310 kilometres by road. The coach takes four and a half hours, and there are some ten a day.",
    ),
    (
        "Which herbs live through the winter outside?",
        "Thyme, sage, savory and chives do in most gardens; rosemary only in a mild corner. Basil does not.",
    ),
    (
        "How do I get candle wax out of a tablecloth?",
        (
            "Let it harden, break off what you can, then iron the rest into "
            "brown paper, moving it on until nothing comes any more."
        ),
    ),
    (
        "What is the plural of octopus?",
        "Octopuses. The word came from Greek, so octopi was never right, and octopodes is right but nobody says it.",
    ),
    (
        "How many steps are a kilometre?",
        "About 1,300 for a grown person with an ordinary stride, a few more if you stroll.",
    ),
    (
        "Can I freeze cooked rice?",
        "Yes. Cool it quickly, freeze it flat in portions within a day, and heat it until it smokes right through.",
    ),
    (
        "Who wrote the Brandenburg Concertos?",
        "Johann Sebastian Bach. He sent the six of them to the Margrave of Brandenburg in 1721.",
    ),
    (
        "What does a night on a sleeper train to Vienna cost?",
        (
            "From Hamburg a seat begins at about 40 euros, a couchette "
            "at 60 and a bed at 100; the earlier you book, the less."
        ),
    ),
)
"""Ordinary questions and their answers; one after each version, and all of them once more at the end."""
