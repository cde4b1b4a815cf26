"""What a view says once, in few words, and when: names, columns one to one, constants (H14, H15, H18, H20)."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyve
from hyve.bundles import bundled, natural
from hyve.tokens import count_tokens


def expanded(text: str) -> Iterator[str]:
    """What bash makes of braces in a text."""
    parts = re.split(r"\{([^{}]*)\}", text)
    choices = []
    for inner in parts[1::2]:
        first, dots, last = inner.partition("..")
        if dots:
            width = len(first) if first[0] == "0" and len(first) > 1 else 0
            choices.append([f"{number:0{width}d}" for number in range(int(first), int(last) + 1)])
        else:
            choices.append(inner.split(","))
    for chosen in product(*choices):
        yield "".join(part for pair in zip(parts[::2], [*chosen, ""], strict=True) for part in pair)


def data_of(text: str) -> list[str]:
    return text.split("\n# Data ")[1].split("\n# End ")[0].split("\n")


def line_of(text: str, start: str) -> str:
    return next((line for line in data_of(text) if line.startswith(start)), "")


NAMES = st.lists(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["web-", "10.0.0.", "ip-10-0-1-", "checkout-7d9f8b6c5-", "", "a{b", "x,y"]),
        st.one_of(st.integers(0, 120), st.integers(0, 120).map("{:03d}".format), st.text("abcdef-0129", max_size=6)),
        st.sampled_from([":9100", ".ec2.internal", "", "-0", "1"]),
    ),
    unique=True,
    max_size=60,
)


@settings(deadline=None)
@given(NAMES)
def test_bundles_of_names_read_back_and_are_never_dearer(drawn: list[str]) -> None:
    """H14: as bash expands braces, in the same order."""
    names = sorted(drawn, key=natural)
    texts = bundled(names)
    if texts:
        assert [name for text, _ in texts for name in expanded(text)] == names
        assert [count for _, count in texts] == [len([*expanded(text)]) for text, _ in texts]
        assert count_tokens(", ".join(text for text, _ in texts)) < count_tokens(", ".join(names))


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        ([f"10.0.0.{i}:9100" for i in range(40)], ["10.0.0.{0..39}:9100"]),
        ([f"web-{i:02d}" for i in range(8, 40)], ["web-{08..39}"]),
        ([f"r{a}.h{b:03d}" for a in (1, 2) for b in range(20)], ["r1.h{000..019}", "r2.h{000..019}"]),
        (
            [f"node-{c}{c}.prod.example.internal" for c in "abcdefgh"],
            ["node-{aa,bb,cc,dd,ee,ff,gg,hh}.prod.example.internal"],
        ),
        (["alpha", "beta", "delta", "gamma"], []),
        ([f"{{{i},x}}" for i in range(40)], []),
    ],
)
def test_names_that_count_on_or_share_their_ends_are_bundled(names: list[str], texts: list[str]) -> None:
    """H14: what tells nothing apart is said once."""
    assert [text for text, _ in bundled(names)] == texts


def spike(names: list[str], times: int = 120) -> list[dict[str, Any]]:
    """A gauge of some hosts, one value of the 24th of which is far out."""
    draw = random.Random(5)
    return [
        {
            "ts": f"2026-03-01T{10 + i // 60}:{i % 60:02d}:00Z",
            "host": name,
            "cpu": 97.3 if (h, i) == (23, 77) else round(draw.gauss(50, 2), 2),
        }
        for i in range(times)
        for h, name in enumerate(names)
    ]


@pytest.mark.parametrize("budget", [1_000, 2_000])
def test_a_spike_is_shown_with_its_host_and_time_before_long_lists_of_names(budget: int) -> None:
    """H15, H18: 40 hosts that are called alike take one bundle; means name them whole."""
    text = hyve.view(json.dumps(spike([f"10.0.0.{h}:9100" for h in range(40)])), budget=budget).text
    assert "- host VARCHAR: 40 values, 120 rows each: 10.0.0.{0..39}:9100" in data_of(text)
    assert "as in bash" in data_of(text)[1]
    assert "3103|11:17:00|10.0.0.23:9100|97.3" in data_of(text)


def test_names_that_means_tell_are_not_listed_again() -> None:
    """H14: 40 names of nothing in common."""
    draw = random.Random(3)
    names = ["".join(draw.choices("abcdefghiklmnoprstu", k=9)) for _ in range(40)]
    text = hyve.view(json.dumps(spike(names)), budget=2_000).text
    assert "- host VARCHAR: 40 values, 120 rows each" in data_of(text)
    assert all(f"{name}=" in line_of(text, "- mean cpu by host: ") for name in names[:12])
    assert f"3103|11:17:00|{names[23]}|97.3" in data_of(text)


def calls(rows: int = 1_200) -> list[dict[str, Any]]:
    """Calls of services, of which namespace, short name and pod are other names."""
    draw = random.Random(9)
    services = ["cart-svc", "pay-svc", "search-svc", "ads-svc", "mail-svc"]
    pods = {name: f"{draw.randrange(16**9):09x}-{draw.randrange(16**5):05x}" for name in services}
    return [
        {
            "service": (name := draw.choice(services)),
            "namespace": f"shop-{name}",
            "short": name.removesuffix("-svc"),
            "pod": pods[name],
            "ms": round(draw.gauss(80, 9), 3),
        }
        for _ in range(rows)
    ]


def test_columns_one_to_one_with_another_are_told_by_it() -> None:
    """H14, H15: what is made of it by an expression, which SQL agrees with; the values of others in its order."""
    records = calls()
    text = hyve.view(json.dumps(records), budget=1_500).text
    service = line_of(text, "- service VARCHAR: 5 values: ")
    told = [line.removeprefix("- the same: ") for line in data_of(text) if line.startswith("- the same: ")]
    assert told == ["namespace = 'shop-' || service", "short = replace(service, '-svc', '')"]
    with hyve.Datastore.from_text(json.dumps(records)) as store:
        checks = " AND ".join(f"bool_and({each.replace(' = ', ' = (', 1)}))" for each in told)
        assert [*store.query(f"SELECT {checks} FROM records").rows[0]] == [True]
    names = [each.split(" ")[0] for each in service.split(": ", 2)[2].split(", ")]
    pods = line_of(text, "- pod VARCHAR, one to one with service and in its order: ").split(": ", 1)[1].split(", ")
    assert dict(zip(names, pods, strict=True)) == {each["service"]: each["pod"] for each in records}
    head = line_of(text, "rowid|").split("|")
    assert "service" in head
    assert not {"namespace", "short"} & {*head}
    named = hyve.view(json.dumps(records), question="why is shop-pay-svc slow?", budget=1_500).text
    assert line_of(named, "- namespace = shop-pay-svc: ")


def test_what_nearly_is_one_to_one_is_told_itself() -> None:
    """Invariant 3: one row in which it is not."""
    records = [*calls(), {"service": "cart-svc", "namespace": "shop-pay-svc", "short": "ads", "pod": "x", "ms": 80.0}]
    text = hyve.view(json.dumps(records), budget=1_500).text
    assert "one to one" not in text
    assert not line_of(text, "- the same: ")
    assert line_of(text, "- namespace VARCHAR: 5 values: ")


@pytest.mark.parametrize("budget", [600, 700, 1_000])
def test_columns_that_nothing_else_is_said_of_are_named(budget: int) -> None:
    """H20, H24: what has no name can't be asked for."""
    records = [
        {"ts": f"2026-03-01T10:{i // 60:02d}:{i % 60:02d}Z", "host": f"h{i % 7}", "queue_depth": i * i % 17, "x": i % 3}
        for i in range(3_000)
    ]
    records[1_500]["queue_depth"] = "n/a: broker unreachable"
    lines = data_of(hyve.view(json.dumps(records), budget=budget).text)
    assert all(any(name in line for line in lines) for name in ("ts", "host", "queue_depth", "x"))


def test_what_varies_comes_before_constants() -> None:
    """H18: 200 constants beside one measure, at 2,000 tokens."""
    draw = random.Random(2)
    records = [
        {**{f"l_{k}": f"v-{k}" for k in range(200)}, "lag": 987.65 if i == 150 else round(draw.gauss(5, 0.2), 2)}
        for i in range(300)
    ]
    lines = data_of(hyve.view(json.dumps(records), budget=2_000).text)
    constants = [line for line in lines if line.startswith("- constant: ")]
    assert "150|987.65" in lines
    assert 12 <= sum(line.count(" = ") for line in constants) <= 40
    assert sum(map(count_tokens, constants)) < 400


def test_columns_of_one_value_and_empties_share_a_line() -> None:
    """H14: each with the rows that have it, most first."""
    records = [
        {"n": i * 7919 % 1000, "t": f"text {i}", **({"a": "-"} if i < 9 else {}), **({"b": "yes"} if i % 2 else {})}
        for i in range(600)
    ]
    text = hyve.view(json.dumps(records), budget=900).text
    assert "- one value, else empty: b = yes ×300, a = - ×9" in data_of(text)


def test_the_number_of_a_list_is_explained_and_told_once() -> None:
    """H20, H23: where nothing names the lists; what they hold comes first."""
    value = {"hosts": [[f"name-{i}-{k}.example" for k in range(30 + i)] for i in range(4)], "note": "x"}
    text = hyve.view(json.dumps(value), budget=700).text
    numbers = [line for line in data_of(text) if "30" in line and "31" in line and "33" in line]
    assert len(numbers) <= 1


@pytest.mark.parametrize("budget", [1_000, 2_000])
def test_a_last_value_is_told_where_its_count_takes_as_much(budget: int) -> None:
    """H14: `... (1 more)` says less than the name."""
    records = [{"status": ("STATUS_CODE_ERROR", "STATUS_CODE_OK")[i % 2], "n": i * 7919 % 1009} for i in range(2_000)]
    text = hyve.view(json.dumps(records), budget=budget).text
    assert line_of(text, "- status ").endswith(": STATUS_CODE_ERROR, STATUS_CODE_OK")
