"""What the guards find, and what they leave alone."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_service.text.chat import cleaned
from dragoman_service.text.guards import Expectation, Guard, changed_placeholders, check
from dragoman_service.text.numbers import changed_numbers
from dragoman_service.text.placeholders import placeholders

RATES = Path(__file__).parents[4] / "bench" / "guards" / "rates.py"


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("guard_rates", RATES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["guard_rates"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["guard_rates"]


def test_the_corpus_is_large_and_balanced(bench: ModuleType) -> None:
    corpus = bench.cases()

    assert len(corpus) >= 200
    assert len({(case.source, case.output, case.target_lang) for case in corpus}) >= 0.95 * len(corpus)
    for guard in Guard:
        about = [case.fires for case in corpus if case.guard is guard]
        assert sum(about) >= 7
        assert len(about) - sum(about) >= 6


def test_rates_stay_above_their_floors(bench: ModuleType) -> None:
    corpus = bench.cases()
    good = sum(not case.fires for case in corpus)
    for guard, rate in bench.rates(corpus).items():
        assert rate.found >= 0.9 * rate.bad, guard
        assert rate.false_alarms <= 0.02 * good, guard


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("1,000.5", "1.000,5", (0, 0)),
        ("1,000.5", "१,०००.५", (0, 0)),
        ("1,000", "1000", (0, 0)),
        ("3.5", "35", (1, 1)),
        ("12.345", "12,345", (0, 0)),
        ("1,00,000", "100 000", (0, 0)),
        ("2 and two", "2 and 2", (0, 0)),
        ("5 apples", "7 apples", (1, 1)),
        ("437 apples", "apples", (1, 0)),
        ("apples", "437 apples", (0, 1)),
        ("3 million", "300万", (0, 0)),
        ("3 pm", "15 Uhr", (0, 0)),
        ("the 19th century", "le XIXe siècle", (0, 0)),
        ("2.5 million", "25 लाख", (0, 0)),
        ("in 2001 200 people", "2001 kamen 200", (0, 0)),
        ("1 250 000", "1.250.000", (0, 0)),
        ("\U00010d41 apples", "apples", (0, 0)),
        ("07/04/2021", "04.07.2021", (0, 0)),
        ("1.000.000", "1,000,000", (0, 0)),
        ("version 1.12.3", "1.12.3 版", (0, 0)),
        ("in the 17th century", "på 1600-tallet", (0, 0)),
        ("1600-luvulla", "in the 17th century", (0, 0)),
        ("1600-talet", "17世纪", (0, 0)),
        ("1600年代", "the 1600s", (0, 0)),
        ("the 21st century", "2000-talet", (0, 0)),
        ("in the 1990s", "in den 90er Jahren", (0, 0)),
        ("the 17th century", "1800-tallet", (1, 1)),
        ("1600 people", "17 people", (1, 1)),
        ("at 2:35 pm", "um 14:35 Uhr", (0, 0)),
        ("at 10:08 p.m.", "kl. 22.08", (0, 0)),
        ("at 3.35 pm", "15:35", (0, 0)),
        ("下午3:35", "15.35 Uhr", (0, 0)),
        ("12:40 a.m.", "00:40", (0, 0)),
        ("8-11 pm", "20–23 Uhr", (0, 0)),
        ("klo 15.35", "at 15:35", (0, 0)),
        ("at 3 pm", "um 17 Uhr", (1, 1)),
        ("at 2:35 pm", "um 14:53 Uhr", (1, 1)),
        ("55 miles", "89 km", (0, 0)),
        ("90 公里", "56 miles", (0, 0)),
        ("a 6-foot wall", "una pared de 1,8 metros", (0, 0)),
        ("98 °F", "36,7 °C", (0, 0)),
        ("220 pounds", "100 кг", (0, 0)),
        ("55 miles", "65 miles", (1, 1)),
        ("55 miles", "120 km", (1, 1)),
        ("55 km", "89 km", (1, 1)),
    ],
)
def test_numbers_are_compared_as_numbers(source: str, output: str, expected: tuple[int, int]) -> None:
    assert changed_numbers(source, output) == expected


@pytest.mark.parametrize(
    ("source", "output", "talks"),
    [
        ('"Hello, world","12"', '"Hallo, Welt, 12"', False),
        ('"Shut the door", "Open it"', "„Tür schließen, Tür öffnen“", False),
        ("Shut the door", '"Tür schließen"', True),
        ("This is the list of all the things that you should read before you start with the work:",
         "以下は始める前に読むべきものの一覧です:", False),
        ("The door is shut.", "以下是翻译：门关着。", True),
        ("The train leaves at 10:30.", "Sure, here is the translation: Der Zug fährt um 10:30 Uhr.", True),
        ("The train leaves at 10:30.", "Here is the translation: Der Zug fährt um 10.30 Uhr.", True),
        ("The train leaves at 10:30.", "German: Der Zug fährt um 10.30 Uhr.", True),
        ("Note: the door is shut.", "Sure, here is the translation: Hinweis: Die Tür ist zu.", True),
        ("See https://example.org/a.", "Here is the translation: Siehe https://example.org/a.", True),
        ("Note: the door is shut.", "Hinweis: Die Tür ist zu.", False),
        ("The new translation: a day of work", "Die neue Übersetzung: ein Tag Arbeit", False),
        ("German: the door", "German: die Tür", False),
        ("\nNote that order matters.\n", "\nAnmerkung: Auf die Reihenfolge kommt es an.\n", False),
    ],
)  # fmt: skip
def test_talk_around_a_translation(source: str, output: str, talks: bool) -> None:
    found = {found.guard for found in check(source, output, Expectation("en", "de"))}

    assert (Guard.PREAMBLE in found) is talks


@pytest.mark.parametrize(
    ("source", "output", "changed"),
    [
        # arguments may be numbered, or lose their numbers, where each gets the same value
        ("Release '%s' for '%s'", "%2$s 패키지의 '%1$s' 릴리즈", (0, 0)),
        ("來源列表 %2$s 第 %1$u 行", "line %u of source list %s", (0, 0)),
        ("%.*s is in %s", "%3$s: %2$.*1$s", (0, 0)),
        ("%% of %d in %s", "%2$s: %1$d %%", (0, 0)),
        ("%@ of %@", "%2$@: %1$@", (0, 0)),
        ("{} of {}", "{1}: {0}", (0, 0)),
        ("{:>5} of {}", "{1}: {0:>5}", (0, 0)),
        ("{0} of {1}", "{1}: {0}", (0, 0)),
        ("%(a)s of %(b)s", "%(b)s: %(a)s", (0, 0)),
        ("%s of %d", "%2$s: %1$d", (2, 2)),
        ("%s of %s", "%1$s: %1$s", (2, 2)),
        ("%s of %s", "%2$s: %3$s", (2, 2)),
        ("%s of %s", "%s", (1, 0)),
        ("{0} of {1}", "{0}", (1, 0)),
        # what stands beside letters in one text only
        ("%sB will be freed", "%s바이트", (0, 0)),
        ("%u-bit", "%ubitový", (0, 0)),
        ("ask debian-devel@lists.debian.org first", "まずdebian-devel@lists.debian.orgで", (0, 0)),
        ("%s of %sB", "%sB", (1, 0)),
        # quotes, not code
        ("user `%s' is in group `%s'", "„%s“ ist in der Gruppe „%s“", (0, 0)),
        ("用户`%s'在组`%s'中", "user “%s” is in group “%s”", (0, 0)),
        ("use `read' (or `skip')", "„read“ (oder „skip“)", (0, 0)),
        ("run `print('a')` now", "jetzt ausführen", (1, 0)),
        ("`don't` and `f'(x)` here", "hier", (2, 0)),
    ],
)
def test_placeholders_get_the_same_values(source: str, output: str, changed: tuple[int, int]) -> None:
    assert changed_placeholders(source, output) == changed


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("メーリングリストdebian-devel@lists.debian.orgで", ["email"]),
        ("请看www.example.org。", ["url"]),
        ("use `read' or `skip'", []),
        ("`a` and `b c` and `变量`", ["code", "code", "code"]),
        ("%2$.*1$s", ["printf"]),
    ],
)
def test_what_is_a_placeholder(text: str, kinds: list[str]) -> None:
    assert [found.kind for found in placeholders(text)] == kinds


def test_many_placeholders_are_compared_in_time() -> None:
    source = " ".join(f"{{a{number}}}" for number in range(20_000))

    assert changed_placeholders(source, "%s " * 20_000) == (20_000, 20_000)


def test_many_numbers_are_compared_in_time() -> None:
    source, output = (" ".join(f"{first + 7 * n}.30 miles pm" for n in range(3000)) for first in (1, 4))

    assert changed_numbers(source, f"{output} km")[0] > 0


def test_thoughts_are_cleaned_away() -> None:
    assert cleaned("<think>Hm.</think>\n\nHallo.<end_of_turn>") == "Hallo."
    assert cleaned("Hm, polite form.</think>Hallo.") == "Hallo."
    assert cleaned("<think>still thinking") == ""
    assert cleaned("Ich denke <b>so</b>.") == "Ich denke <b>so</b>."


def test_markers_are_no_words_of_the_text() -> None:
    expected = Expectation("en", "ne", markers=True)

    assert check("The <x1>big</x1> house <x25/>.", "<x1>ठूलो</x1> घर <x25/>।", expected) == ()


def test_details_repeat_nothing_of_the_texts() -> None:
    findings = check("The secret is 4711 for {name}.", "The secret is 4711 for 815.", Expectation("en", "de"))

    assert findings
    assert not any(word in found.detail for found in findings for word in ("secret", "4711", "815", "name"))


odd = st.lists(
    st.sampled_from(
        ["1,0", "٣.٥", "<think>", "</think>", "Note:", '"', "{", "%s", "\ud800", "XIV", "3 pm", "万", "\n"]
    )
    | st.text(max_size=6),
    max_size=12,
).map("".join)


@given(odd, odd, st.sampled_from(["de", "zh-Hant", "ja", "ne", "tlh"]))
def test_no_text_makes_a_guard_fail(source: str, output: str, target_lang: str) -> None:
    findings = check(source, cleaned(output), Expectation("en", target_lang))

    assert len({found.guard for found in findings}) == len(findings)
