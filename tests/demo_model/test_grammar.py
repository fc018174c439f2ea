"""The demo model's grammar: deterministic, large enough, linguistically right, and split cleanly."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES / "demo-model"))

from training import generate, lexicon  # noqa: E402
from training.choose import table_of  # noqa: E402
from training.circumstances import adverb  # noqa: E402
from training.syntax import (  # noqa: E402
    Adverb,
    Age,
    Clause,
    Determiner,
    Existence,
    Feeling,
    Job,
    Modal,
    NounPhrase,
    Numeral,
    Order,
    Pair,
    Price,
    Pronoun,
    Question,
    Request,
    Sentence,
    Tense,
    Weather,
    WhatTime,
    Where,
    WhereIs,
)

D, P, T, Q = Determiner, Pronoun, Tense, Question


def noun(
    word: str, determiner: Determiner = D.THE, plural: bool = False, adjective: str = "", count: str = ""
) -> NounPhrase:
    found = next((a for a in lexicon.adjectives() if a.en == adjective), None)
    number = None
    if count:
        row = next((row for row in table_of("numbers") if row["en"] == count), None)
        en, fr, de, ne = (row[code] if row else count for code in ("en", "fr", "de", "ne"))
        number = Numeral(en, fr, de, ne)
    return NounPhrase(
        lexicon.nouns()[word], determiner=determiner, plural=plural, adjective=found, numeral=number
    )


def me(pronoun: Pronoun = P.I) -> NounPhrase:
    return NounPhrase(pronoun=pronoun)


def named(*given: str) -> NounPhrase:
    people = [next(name for name in lexicon.names() if name.en == each) for each in given]
    also = NounPhrase(name=people[1]) if len(people) == 2 else None
    return NounPhrase(name=people[0], also=also)


def placeholder(text: str) -> NounPhrase:
    return NounPhrase(name=lexicon.Name(text, "m", text))


def verb(word: str, table: str = "verbs", rest: str | None = None, aspect: str | None = None) -> lexicon.Verb:
    return next(
        v
        for v in lexicon.verbs(table)
        if v.en == word and rest in (None, v.en_rest) and aspect in (None, v.aspect)
    )


def when(english: str, number: int = 0) -> tuple[Adverb, ...]:
    rows = [row for name in ("times", "frequencies", "transport") for row in table_of(name)]
    found = adverb(next(row for row in rows if row["en"] == english), number)
    return (replace(found, manner=english.startswith("by ")),)


def clock(shown: str) -> tuple[Adverb, ...]:
    hour, minute = shown.split(":")
    return (Adverb(f"at {shown}", f"à {hour} h {minute}", f"um {shown} Uhr", f"{shown} बजे"),)


def at(place: str, to: bool = False, determiner: Determiner = D.THE, adjective: str = "") -> Where:
    found = next(p for p in lexicon.places() if p.noun.en == place)
    return Where(place=found, phrase=noun(place, determiner, adjective=adjective), to=to)


def town(english: str, to: bool = False) -> Where:
    return Where(town=next(row for row in table_of("towns") if row["en_in"] == english), to=to)


def by(relation: str, thing: NounPhrase) -> Where:
    return Where(relation=next(r for r in table_of("relations") if r["en"] == relation), phrase=thing)


def adjective(word: str, nepali: str = "") -> lexicon.Adjective:
    return next(a for a in lexicon.adjectives() if a.en == word and nepali in ("", a.ne))


def row(table: str, english: str) -> lexicon.Row:
    return next(row for row in table_of(table) if row["en"] == english)


def measured(word: str, measure: str, count: str = "") -> NounPhrase:
    counted = noun(word, count=count)
    return NounPhrase(
        counted.noun,
        determiner=D.MEASURE,
        plural=not lexicon.nouns()[word].mass,
        numeral=counted.numeral,
        measure=row("measures", measure),
    )


GOLDEN: list[tuple[Sentence, str, str, str, str]] = [
    # Articles, gender, elision, the partitive, kein.
    (
        Clause(me(), verb("drink"), object=noun("water", D.BARE), negative=True),
        "I am not drinking water.",
        "Je ne bois pas d'eau.",
        "Ich trinke kein Wasser.",
        "म पानी पिउँदै छैनँ।",
    ),
    (
        Clause(named("Anna"), verb("buy"), object=noun("bread", D.BARE), where=at("bakery"), tense=T.PAST),
        "Anna bought bread at the bakery.",
        "Anna a acheté du pain à la boulangerie.",
        "Anna hat in der Bäckerei Brot gekauft.",
        "अन्नाले बेकरीमा पाउरोटी किनिन्।",
    ),
    (
        Clause(me(P.SHE), verb("eat"), object=noun("apple", D.NUMBER, True, "red", "two"), tense=T.PAST),
        "She ate two red apples.",
        "Elle a mangé deux pommes rouges.",
        "Sie hat zwei rote Äpfel gegessen.",
        "उनले दुई वटा राता स्याउ खाइन्।",
    ),
    (
        Clause(named("Lukas"), verb("buy"), object=noun("apple", D.NUMBER, True, count="42"), tense=T.PAST),
        "Lukas bought 42 apples.",
        "Lukas a acheté 42 pommes.",
        "Lukas hat 42 Äpfel gekauft.",
        "लुकासले 42 वटा स्याउ किने।",
    ),
    (
        Clause(me(P.WE), verb("have"), object=noun("house", D.A, adjective="old"), simple=True),
        "We have an old house.",
        "Nous avons une vieille maison.",
        "Wir haben ein altes Haus.",
        "हामीसँग एउटा पुरानो घर छ।",
    ),
    (
        Clause(me(), verb("have"), object=noun("brother", D.NUMBER, True, count="three"), simple=True),
        "I have three brothers.",
        "J'ai trois frères.",
        "Ich habe drei Brüder.",
        "मेरा तीन जना भाइ छन्।",
    ),
    (
        Clause(named("Maya"), verb("have"), object=noun("sister", D.A), simple=True),
        "Maya has a sister.",
        "Maya a une sœur.",
        "Maya hat eine Schwester.",
        "मायाकी एक जना बहिनी छिन्।",
    ),
    (
        Clause(me(P.THEY), verb("have"), object=noun("car", D.A), negative=True, simple=True),
        "They do not have a car.",
        "Ils n'ont pas de voiture.",
        "Sie haben kein Auto.",
        "उनीहरूसँग कार छैन।",
    ),
    (
        Clause(noun("child", plural=True), verb("like"), object=noun("chocolate", D.GENERIC), simple=True),
        "The children like chocolate.",
        "Les enfants aiment le chocolat.",
        "Die Kinder mögen Schokolade.",
        "बच्चाहरूलाई चकलेट मन पर्छ।",
    ),
    (
        Clause(me(P.HE), verb("like"), object=noun("cat", D.GENERIC, True), negative=True, simple=True),
        "He does not like cats.",
        "Il n'aime pas les chats.",
        "Er mag keine Katzen.",
        "उनलाई बिरालो मन पर्दैन।",
    ),
    (
        Clause(me(), verb("need"), object=noun("umbrella", D.A), simple=True),
        "I need an umbrella.",
        "J'ai besoin d'un parapluie.",
        "Ich brauche einen Regenschirm.",
        "मलाई एउटा छाता चाहिन्छ।",
    ),
    # Tense, verb second, time first, nicht.
    (
        Clause(me(), verb("read"), object=noun("book"), times=when("yesterday"), front=True, tense=T.PAST),
        "Yesterday I read the book.",
        "Hier, j'ai lu le livre.",
        "Gestern habe ich das Buch gelesen.",
        "हिजो मैले किताब पढेँ।",
    ),
    (
        Clause(
            noun("mother", D.MY),
            verb("repair"),
            object=noun("bicycle"),
            times=when("tomorrow"),
            tense=T.FUTURE,
            negative=True,
        ),
        "My mother will not repair the bicycle tomorrow.",
        "Ma mère ne réparera pas le vélo demain.",
        "Meine Mutter wird das Fahrrad morgen nicht reparieren.",
        "मेरी आमा भोलि साइकल मर्मत गर्नुहुनेछैन।",
    ),
    (
        Clause(
            noun("brother", D.MY),
            verb("read"),
            object=noun("newspaper"),
            times=when("every morning"),
            simple=True,
        ),
        "My brother reads the newspaper every morning.",
        "Mon frère lit le journal tous les matins.",
        "Mein Bruder liest jeden Morgen die Zeitung.",
        "मेरो भाइ हरेक बिहान अखबार पढ्छ।",
    ),
    (
        Clause(
            noun("teacher"),
            verb("drink"),
            object=noun("coffee", D.BARE),
            frequency=when("never")[0],
            simple=True,
        ),
        "The teacher never drinks coffee.",
        "Le professeur ne boit jamais de café.",
        "Der Lehrer trinkt nie Kaffee.",
        "शिक्षक कहिल्यै कफी पिउनुहुन्न।",
    ),
    (
        Clause(noun("student"), verb("call"), object=noun("neighbour"), times=when("now")),
        "The student is calling the neighbour now.",
        "L'étudiant appelle le voisin maintenant.",
        "Der Student ruft jetzt den Nachbarn an.",
        "विद्यार्थी अहिले छिमेकीलाई फोन गर्दै छन्।",
    ),
    (
        Clause(me(P.WE), verb("wait"), object=noun("bus"), where=at("station")),
        "We are waiting for the bus at the station.",
        "Nous attendons le bus à la gare.",
        "Wir warten am Bahnhof auf den Bus.",
        "हामी स्टेसनमा बस कुर्दै छौँ।",
    ),
    (
        Clause(noun("nurse"), verb("help"), object=noun("tourist", plural=True), tense=T.PAST),
        "The nurse helped the tourists.",
        "L'infirmière a aidé les touristes.",
        "Die Krankenschwester hat den Touristen geholfen.",
        "नर्सले पर्यटकहरूलाई मद्दत गरिन्।",
    ),
    (
        Clause(
            named("Paul"),
            verb("give", "gifts"),
            object=noun("key"),
            recipient=noun("sister", D.MY),
            tense=T.PAST,
        ),
        "Paul gave the key to my sister.",
        "Paul a donné la clé à ma sœur.",
        "Paul hat meiner Schwester den Schlüssel gegeben.",
        "पलले मेरी बहिनीलाई चाबी दिए।",
    ),
    (
        Clause(
            me(P.SHE),
            verb("go", "motion", aspect="near"),
            where=at("school", True),
            times=when("every day"),
            simple=True,
        ),
        "She goes to the school every day.",
        "Elle va à l'école tous les jours.",
        "Sie geht jeden Tag in die Schule.",
        "उनी हरेक दिन विद्यालय जान्छिन्।",
    ),
    (
        Clause(
            me(P.WE),
            verb("go", "motion", aspect="far"),
            where=town("in Vienna", True),
            times=when("by train") + when("tomorrow"),
            tense=T.FUTURE,
        ),
        "We will go to Vienna by train tomorrow.",
        "Nous irons à Vienne en train demain.",
        "Wir werden morgen mit dem Zug nach Wien fahren.",
        "हामी भोलि रेलबाट भियना जानेछौँ।",
    ),
    (
        Clause(
            named("Sophie"),
            verb("come", "motion", aspect="far"),
            where=town("in Switzerland", True),
            tense=T.PAST,
        ),
        "Sophie came to Switzerland.",
        "Sophie est venue en Suisse.",
        "Sophie ist in die Schweiz gekommen.",
        "सोफी स्विट्जरल्याण्ड आइन्।",
    ),
    (
        Clause(noun("train"), verb("leave", "schedules"), times=clock("8:30"), simple=True),
        "The train leaves at 8:30.",
        "Le train part à 8 h 30.",
        "Der Zug fährt um 8:30 Uhr ab.",
        "रेल 8:30 बजे छुट्छ।",
    ),
    (
        Clause(noun("father", D.OUR), verb("work", aspect="located"), where=at("hospital"), simple=True),
        "Our father works at the hospital.",
        "Notre père travaille à l'hôpital.",
        "Unser Vater arbeitet im Krankenhaus.",
        "हाम्रा बुबा अस्पतालमा काम गर्नुहुन्छ।",
    ),
    (
        Clause(
            noun("boy", plural=True),
            verb("play", "idioms", rest="football"),
            times=when("this morning"),
            tense=T.PAST,
        ),
        "The boys played football this morning.",
        "Les garçons ont joué au football ce matin.",
        "Die Jungen haben heute Morgen Fußball gespielt.",
        "केटाहरूले आज बिहान फुटबल खेले।",
    ),
    (
        Clause(me(), verb("watch", "idioms"), times=when("this evening"), modal=Modal.CAN, negative=True),
        "I cannot watch television this evening.",
        "Je ne peux pas regarder la télévision ce soir.",
        "Ich kann heute Abend nicht fernsehen.",
        "म आज बेलुका टेलिभिजन हेर्न सक्दिनँ।",
    ),
    (
        Clause(named("Hari"), verb("pay"), object=noun("bill"), modal=Modal.MUST),
        "Hari must pay the bill.",
        "Hari doit payer la facture.",
        "Hari muss die Rechnung bezahlen.",
        "हरिले बिल तिर्नुपर्छ।",
    ),
    (
        Clause(me(P.SHE), verb("choose"), object=noun("gift", D.A, adjective="beautiful"), modal=Modal.WANT),
        "She wants to choose a beautiful gift.",
        "Elle veut choisir un beau cadeau.",
        "Sie möchte ein schönes Geschenk aussuchen.",
        "उनी एउटा सुन्दर उपहार छान्न चाहन्छिन्।",
    ),
    # To be.
    (
        Clause(noun("soup", D.THIS), predicate=adjective("delicious")),
        "This soup is delicious.",
        "Cette soupe est délicieuse.",
        "Diese Suppe ist lecker.",
        "यो सुप स्वादिष्ट छ।",
    ),
    (
        Clause(named("Emma", "Sita"), predicate=adjective("tired"), times=when("yesterday"), tense=T.PAST),
        "Emma and Sita were tired yesterday.",
        "Emma et Sita étaient fatiguées hier.",
        "Emma und Sita waren gestern müde.",
        "एमा र सीता हिजो थाकेका थिए।",
    ),
    (
        Clause(noun("museum"), predicate=adjective("closed"), times=when("today"), front=True),
        "Today the museum is closed.",
        "Aujourd'hui, le musée est fermé.",
        "Heute ist das Museum geschlossen.",
        "आज संग्रहालय बन्द छ।",
    ),
    (
        Clause(noun("aunt", D.MY), predicate=Job(row("professions", "teacher"))),
        "My aunt is a teacher.",
        "Ma tante est professeure.",
        "Meine Tante ist Lehrerin.",
        "मेरी काकी शिक्षक हुनुहुन्छ।",
    ),
    (
        Clause(me(P.HE), predicate=Job(row("professions", "doctor")), negative=True),
        "He is not a doctor.",
        "Il n'est pas médecin.",
        "Er ist kein Arzt.",
        "उनी डाक्टर होइनन्।",
    ),
    (
        Clause(noun("son", D.MY), predicate=Age("7")),
        "My son is 7 years old.",
        "Mon fils a 7 ans.",
        "Mein Sohn ist 7 Jahre alt.",
        "मेरो छोरा 7 वर्षको छ।",
    ),
    (
        Clause(me(), predicate=Feeling(row("feelings", "hungry")), negative=True),
        "I am not hungry.",
        "Je n'ai pas faim.",
        "Ich habe keinen Hunger.",
        "मलाई भोक लागेको छैन।",
    ),
    (
        Clause(noun("cat", plural=True), predicate=by("under", noun("table"))),
        "The cats are under the table.",
        "Les chats sont sous la table.",
        "Die Katzen sind unter dem Tisch.",
        "बिरालाहरू टेबुलमुनि छन्।",
    ),
    (
        Clause(noun("pharmacy"), predicate=by("next to", noun("market"))),
        "The pharmacy is next to the market.",
        "La pharmacie est à côté du marché.",
        "Die Apotheke ist neben dem Markt.",
        "फार्मेसी बजारको छेउमा छ।",
    ),
    # Questions and requests.
    (
        Clause(me(P.YOU), verb("find"), object=noun("passport", D.YOUR), tense=T.PAST, question=Q.YES_NO),
        "Did you find your passport?",
        "Avez-vous trouvé votre passeport ?",
        "Haben Sie Ihren Pass gefunden?",
        "के तपाईंले तपाईंको राहदानी भेट्टाउनुभयो?",
    ),
    (
        Clause(named("Anna"), verb("cry"), question=Q.WHY),
        "Why is Anna crying?",
        "Pourquoi est-ce qu'Anna pleure ?",
        "Warum weint Anna?",
        "अन्ना किन रुँदै छिन्?",
    ),
    (
        Clause(me(P.WHO), verb("open"), object=noun("window"), tense=T.PAST, question=Q.YES_NO),
        "Who opened the window?",
        "Qui a ouvert la fenêtre ?",
        "Wer hat das Fenster geöffnet?",
        "कसले झ्याल खोल्यो?",
    ),
    (
        Clause(noun("girl"), verb("look"), object=noun("bag"), question=Q.WHAT),
        "What is the girl looking for?",
        "Qu'est-ce que la fille cherche ?",
        "Was sucht das Mädchen?",
        "केटी के खोज्दै छिन्?",
    ),
    (
        WhereIs(noun("glass", D.MY, plural=True)),
        "Where are my glasses?",
        "Où sont mes verres ?",
        "Wo sind meine Gläser?",
        "मेरा गिलासहरू कहाँ छन्?",
    ),
    (
        WhatTime(noun("library"), verb("close", "schedules")),
        "What time does the library close?",
        "À quelle heure ferme la bibliothèque ?",
        "Um wie viel Uhr schließt die Bibliothek?",
        "पुस्तकालय कति बजे बन्द हुन्छ?",
    ),
    (
        Request(verb("open"), noun("door"), negative=True),
        "Please do not open the door.",
        "N'ouvrez pas la porte, s'il vous plaît.",
        "Öffnen Sie die Tür bitte nicht.",
        "कृपया ढोका नखोल्नुहोस्।",
    ),
    (
        Request(verb("call"), noun("doctor"), can=True),
        "Can you call the doctor, please?",
        "Pouvez-vous appeler le médecin, s'il vous plaît ?",
        "Können Sie bitte den Arzt anrufen?",
        "के तपाईं डाक्टरलाई फोन गर्न सक्नुहुन्छ?",
    ),
    (
        Order(measured("tea", "cup of", "two")),
        "I would like two cups of tea, please.",
        "Je voudrais deux tasses de thé, s'il vous plaît.",
        "Ich möchte zwei Tassen Tee, bitte.",
        "कृपया मलाई दुई कप चिया दिनुहोस्।",
    ),
    (
        Price(noun("umbrella", D.THIS), "12", row("currencies", "euros")),
        "This umbrella costs 12 euros.",
        "Ce parapluie coûte 12 euros.",
        "Dieser Regenschirm kostet 12 Euro.",
        "यस छाताको मूल्य 12 युरो हो।",
    ),
    # There is, weather, joined clauses, placeholders.
    (
        Existence(noun("milk", D.BARE), at("kitchen"), negative=True),
        "There is no milk in the kitchen.",
        "Il n'y a pas de lait dans la cuisine.",
        "Es gibt keine Milch in der Küche.",
        "भान्सामा दूध छैन।",
    ),
    (
        Weather(row("weather", "It will rain"), when("tomorrow")[0], town("in Berlin"), True),
        "Tomorrow it will rain in Berlin.",
        "Demain, il pleuvra à Berlin.",
        "Morgen wird es in Berlin regnen.",
        "भोलि बर्लिनमा पानी पर्नेछ।",
    ),
    (
        Weather(row("weather", "It is {n} degrees"), town=town("in Nepal"), degrees="18"),
        "It is 18 degrees in Nepal.",
        "Il fait 18 degrés au Népal.",
        "In Nepal sind es 18 Grad.",
        "नेपालमा 18 डिग्री छ।",
    ),
    (
        Pair(
            Clause(named("Maria"), verb("stay"), where=town("at home")),
            "because",
            Clause(me(P.SHE), predicate=adjective("sick")),
        ),
        "Maria is staying at home because she is sick.",
        "Maria reste à la maison parce qu'elle est malade.",
        "Maria bleibt zu Hause, weil sie krank ist.",
        "मारिया घरमा बस्दै छिन् किनभने उनी बिरामी छिन्।",
    ),
    (
        Clause(placeholder("{name}"), verb("live"), where=town("in {city}"), simple=True),
        "{name} lives in {city}.",
        "{name} habite à {city}.",
        "{name} wohnt in {city}.",
        "{name} {city}मा बस्छन्।",
    ),
    (
        Clause(placeholder("<x1/>"), verb("buy"), object=noun("ticket", D.A), tense=T.PAST),
        "<x1/> bought a ticket.",
        "<x1/> a acheté un billet.",
        "<x1/> hat eine Fahrkarte gekauft.",
        "<x1/>ले एउटा टिकट किने।",
    ),
]


@pytest.mark.parametrize(("tree", "en", "fr", "de", "ne"), GOLDEN, ids=[case[1] for case in GOLDEN])
def test_golden_sentence(tree: Sentence, en: str, fr: str, de: str, ne: str) -> None:
    assert generate.render((tree,)).texts == {"en": en, "fr": fr, "de": de, "ne": ne}


def test_at_least_250_content_words() -> None:
    assert len(lexicon.content_words()) >= 250


def test_same_seed_same_texts_in_every_process() -> None:
    command = [sys.executable, "-m", "training.generate", "--count", "300", "--seed", "4"]
    outputs = {
        subprocess.run(
            command,
            cwd=EXAMPLES / "demo-model",
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_every_direction_is_a_function() -> None:
    seen: dict[tuple[str, str, str], str] = {}
    for text in islice(generate.texts(seed=31), 15_000):
        for source, target in generate.DIRECTIONS:
            answer = text.texts[target]
            assert seen.setdefault((source, target, text.texts[source]), answer) == answer


def test_held_out_texts_share_nothing_with_training() -> None:
    trained = [generate.render(text.tree) for text in generate.training_texts(10_000, seed=7)]  # without tags
    held_out = generate.held_out_texts(400, seed=2024)
    for code in ("en", "fr", "de"):  # Nepali does not always tell he from she
        assert not {text.texts[code] for text in trained} & {text.texts[code] for text in held_out}
    assert not any(generate.english_is_held_out(text.texts["en"]) for text in trained)


def examples() -> list[list[str]]:
    lines = (EXAMPLES / "sentences.txt").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def test_example_sentences_cover_every_direction() -> None:
    for source, target in generate.DIRECTIONS:
        assert sum(line[:2] == [source, target] for line in examples()) >= 12


def test_example_sentences_were_never_trained_on() -> None:
    for source, target, text, expected in examples():
        english = text if source == "en" else expected
        assert target == "en" or source == "en"
        assert generate.english_is_held_out(english), english
