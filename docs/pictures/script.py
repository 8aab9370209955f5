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


def _knowing(model: MessagesApi, question: str, word: str, with_it: str, without_it: str) -> None:
    model.on(user=question, background=False).reply(
        fn=lambda request: with_it if word in texts(request) else without_it
    )
