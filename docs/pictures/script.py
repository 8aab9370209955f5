"""What the model says in the pictures. Rule: a fact is used only where Merk has sent it, so no picture can flatter."""

from tests.fakes.messages_api import MessagesApi, texts

DOG = "My dog is called Bruno"
NUTS = "I am allergic to hazelnuts"

PACKING = """\
For you and Bruno:

- a long lead, a towel, a water bowl
- his food for two days
- his **vaccination card**"""
CAKE = """\
An **apple cake with almonds**, since hazelnuts are not for you:

1. Stir butter, sugar, eggs and flour.
2. Lay the apples on top, then the almonds.
3. Bake for 45 minutes at 180 °C."""

MAIL = """\
Dear Ms Krause,

the heating in our flat is cold. Please have it repaired.

Kind regards
Ada"""
DATED_MAIL = """\
Dear Ms Krause,

the heating in our flat has been cold since Monday. Please have it repaired, and tell me when somebody will come.

Kind regards
Ada"""


def rehearse(model: MessagesApi) -> None:
    """Teach the model its part."""
    model.on(user="remember that my dog", has_tool="remember_fact").reply(tool=("remember_fact", {"fact": DOG}))
    model.on(user="remember that I am", has_tool="remember_fact").reply(tool=("remember_fact", {"fact": NUTS}))
    model.on(user="forget", has_tool="forget_fact").reply(tool=("forget_fact", {"query": DOG}))
    model.on(after_tool="^Stored").reply("Of course. I will know it in every chat.")
    model.on(after_tool="matches").reply("Please confirm it here:")
    _knowing(model, "pack", "Bruno", PACKING, "A lead, a towel, a water bowl and food for two days.")
    _knowing(model, r"called\?", "Bruno", "Bruno.", "I do not know. You have not told me.")
    _knowing(model, "bake", "hazelnuts", CAKE, "A hazelnut cake with pears.")


def rehearse_mail(model: MessagesApi) -> None:
    """Teach the model to write a mail and to change it."""
    title = "Mail to the landlord"
    model.on(user="write a mail", has_tool="write_draft").reply(tool=("write_draft", {"title": title, "text": MAIL}))
    model.on(user="since when", has_tool="read_work").reply(tool=("read_work", {}))
    model.on(user="since when", after_tool="^draft: ").reply(tool=("write_draft", {"title": title, "text": DATED_MAIL}))
    model.on(after_tool="^Draft 1 is shown").reply("Here is a first version.")
    model.on(after_tool="^Draft 2 is shown").reply("It says Monday now, and asks for a date.")


def _knowing(model: MessagesApi, question: str, word: str, with_it: str, without_it: str) -> None:
    model.on(user=question, background=False).reply(
        fn=lambda request: with_it if word in texts(request) else without_it
    )
