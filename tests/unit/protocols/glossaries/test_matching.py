"""Terms in texts and in translations."""

import pytest

from dragoman_protocols.glossaries.matching import Glossary, Term, missing


def found(text: str, *terms: Term) -> list[str]:
    return [text[match.start : match.end] for match in Glossary(terms).matches(text)]


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("The Engine starts the engine.", "engine", ["Engine", "engine"]),
        ("Engines and search-engine", "engine", ["engine"]),
        ("No reengineering", "engine", []),
        ("我们的翻译引擎很快", "翻译引擎", ["翻译引擎"]),
        ("서버가 시작됩니다", "서버", ["서버"]),
        ("웹서버가 시작됩니다", "서버", []),
        ("यो सर्भर हो", "सर्भर", ["सर्भर"]),
        ("यो सर्भरहरू हुन्", "सर्भर", []),
        ("C++ is fast", "C++", ["C++"]),
        ("İstanbul, istanbul", "istanbul", ["istanbul"]),
        ("使用API接口", "API", ["API"]),
        ("", "engine", []),
    ],
)
def test_words_end_where_their_script_ends_them(text: str, source: str, expected: list[str]) -> None:
    assert found(text, Term(source, "x")) == expected


def test_the_longest_term_wins() -> None:
    assert found("A load balancer", Term("load", "Last"), Term("load balancer", "Lastverteiler")) == [
        "load balancer"
    ]


def test_case_matters_where_it_is_requested() -> None:
    assert found("IT is it", Term("IT", "EDV", case_sensitive=True)) == ["IT"]


def test_a_term_applies_once() -> None:
    engine = Term("engine", "Motor")

    assert Glossary((engine, Term("wheel", "Rad"))).applying("engine, engine") == (engine,)


def test_of_two_terms_the_first_holds() -> None:
    first = Term("engine", "Motor")

    assert Glossary((first, Term("Engine", "Maschine"))).applying("The engine") == (first,)


@pytest.mark.parametrize(
    ("target", "translation", "is_missing"),
    [
        ("Motor", "Die Motoren laufen.", False),
        ("Motor", "Die Maschine läuft.", True),
        ("Lastverteiler", "des Lastverteilers", False),
        ("neuronales Netz", "mit neuronalen Netzen", False),
        ("neuronales Netz", "ein Netz, neuronal", True),
        ("翻译引擎", "我们的翻译引擎", False),
        ("翻译引擎", "我们的翻译机", True),
        ("motor", "MOTOR", False),
    ],
)
def test_a_translation_has_a_term_with_any_ending(target: str, translation: str, is_missing: bool) -> None:
    term = Term("x", target)

    assert missing([term], translation) == ((term,) if is_missing else ())


def test_many_terms_cost_little() -> None:
    glossary = Glossary(tuple(Term(f"term{number} alpha", "x") for number in range(10_000)))

    assert len(glossary.applying("before term77 alpha after " * 20)) == 1
