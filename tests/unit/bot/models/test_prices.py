"""What a call costs: figures worked out by hand, and files that cannot be used."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.models.anthropic_bill import bill
from bot.models.prices import PricesError, read_prices
from memory.ports import Billed, Usage

PRICES = read_prices()
tokens = st.integers(0, 2_000_000)


@pytest.mark.parametrize(
    ("model", "usage", "nano_usd"),
    [
        # 1000 in at 2, 500 out at 10 dollars a million: 2000 + 5000 millionths
        ("claude-sonnet-5-5", Usage(1000, 500), 7_000_000),
        # reads at 0.10, writes of five minutes at 2.50, of an hour at 4
        ("claude-sonnet-5-5", Usage(cache_read=10_000), 1_000_000),
        ("claude-sonnet-5-5", Usage(cache_write=1000), 2_500_000),
        ("claude-sonnet-5-5", Usage(cache_write=1000, cache_write_1h=1000), 4_000_000),
        ("claude-sonnet-5-5", Usage(cache_write=1000, cache_write_1h=400), 1_500_000 + 1_600_000),
        ("claude-opus-5-5", Usage(10, 20, 30, 40, 40), 40_000 + 400_000 + 6_000 + 320_000),
        # Haiku: the dear rates hold for every token as soon as the prompt, caches included, is over 100,000
        ("claude-haiku-5-5", Usage(100_000, 1000), 10_000_000 + 500_000),
        ("claude-haiku-5-5", Usage(100_001, 1000), 50_000_500 + 2_500_000),
        ("claude-haiku-5-5", Usage(1, 0, 100_000), 500 + 5_000_000),
        ("claude-haiku-4-5-20251001", Usage(1000, 0), 1_000_000),
    ],
)
def test_a_call_costs_what_the_price_list_says(model: str, usage: Usage, nano_usd: int) -> None:
    """To the nano dollar."""
    assert PRICES.cost(Billed(model, usage)) == nano_usd


def test_a_batch_costs_half() -> None:
    """Of everything."""
    line = Billed("claude-sonnet-5-5", Usage(1000, 500, 100, 10, 10))
    whole = PRICES.cost(line)
    assert whole is not None
    assert PRICES.cost(line, in_batch=True) == whole // 2


def test_a_model_without_a_price_costs_nobody_knows_what() -> None:
    """None, never nothing."""
    assert PRICES.cost(Billed("qwen3", Usage(1000, 1000))) is None


@given(st.sampled_from(sorted(PRICES.models)), tokens, tokens, tokens, tokens)
def test_more_tokens_never_cost_less(model: str, inp: int, out: int, read: int, write: int) -> None:
    """In any column; and an hour's write is dearer than one of five minutes."""
    cost = PRICES.cost(Billed(model, Usage(inp, out, read, write)))
    assert cost is not None
    assert cost >= 0
    assert (PRICES.cost(Billed(model, Usage(inp + 1, out + 1, read + 1, write + 1))) or 0) > cost
    assert (PRICES.cost(Billed(model, Usage(inp, out, read, write, write))) or 0) >= cost


def test_a_file_of_ones_own_wins_where_it_says_something(tmp_path: Path) -> None:
    """Other models keep the prices that come with Merk."""
    own = tmp_path / "prices.toml"
    own.write_text('as_of = 2027-01-01\n[models."claude-sonnet-5-5"]\ninput = 1\noutput = 5\ncache_read = 0.05\n')
    prices = read_prices(own)
    assert prices.cost(Billed("claude-sonnet-5-5", Usage(1000, 0))) == 1_000_000
    assert prices.cost(Billed("claude-opus-5-5", Usage(1000, 0))) == 4_000_000
    assert (prices.as_of.year, prices.cache_write_1h) == (2027, Decimal(2))


@pytest.mark.parametrize(
    "text", ["as_of = ", "as_of = 2027-01-01\n[models.a]\ninput = -1\noutput = 1\ncache_read = 1\n", "surprise = 1\n"]
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    """With what is wrong in it."""
    own = tmp_path / "prices.toml"
    own.write_text(text)
    with pytest.raises(PricesError, match=r"prices\.toml"):
        read_prices(own)
    with pytest.raises(PricesError, match="cannot be read"):
        read_prices(tmp_path / "none.toml")


def test_iterations_are_the_whole_bill() -> None:
    """Compaction and advice are missing at the top level; an advisor has a model, and a price, of its own."""
    row = {"type": "message", "input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": None}
    usage = {
        "input_tokens": 10,
        "output_tokens": 20,
        "iterations": [
            {"type": "compaction", "input_tokens": 1000, "output_tokens": 100},
            row,
            {"type": "advisor_message", "model": "claude-opus-5-5", "input_tokens": 500, "output_tokens": 50},
        ],
    }
    lines = bill("claude-sonnet-5-5", usage)
    assert lines == (
        Billed("claude-sonnet-5-5", Usage(1000, 100)),
        Billed("claude-sonnet-5-5", Usage(10, 20)),
        Billed("claude-opus-5-5", Usage(500, 50)),
    )
    assert [PRICES.cost(line) for line in lines] == [3_000_000, 220_000, 3_000_000]


def test_the_two_kinds_of_cache_write_are_told_apart() -> None:
    """By the breakdown; without one, what was asked for: an hour."""
    kept = {"ephemeral_1h_input_tokens": 30, "ephemeral_5m_input_tokens": 10}
    [line] = bill(
        "m", {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 40, "cache_creation": kept}
    )
    assert line.usage == Usage(1, 2, 0, 40, 30)
    [line] = bill("m", {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 40, "iterations": []})
    assert line.usage == Usage(1, 2, 0, 40, 40)
