"""Answers that lack a part of their source are found; whole ones, short ones and terse ones pass."""

# ruff: noqa: E501

import time

import pytest

from dragoman_service.text.completeness import density, evidence, lacks, size, width
from dragoman_service.text.guards import Expectation, Guard, check

WHOLE = {
    "en": "The council will publish the results of the survey next month. Residents who did not take part can still send their comments by post.",
    "de": "Der Rat wird die Ergebnisse der Umfrage im nächsten Monat veröffentlichen. Wer nicht teilgenommen hat, kann seine Anmerkungen noch per Post schicken.",
    "fr": "Le conseil publiera les résultats de l'enquête le mois prochain. Les habitants qui n'y ont pas participé peuvent encore envoyer leurs remarques par courrier.",
    "es": "El ayuntamiento publicará los resultados de la encuesta el mes que viene. Los vecinos que no participaron todavía pueden enviar sus comentarios por correo.",
    "ru": "Совет опубликует результаты опроса в следующем месяце. Жители, которые в нём не участвовали, ещё могут прислать свои замечания по почте.",
    "el": "Το συμβούλιο θα δημοσιεύσει τα αποτελέσματα της έρευνας τον επόμενο μήνα. Όσοι κάτοικοι δεν συμμετείχαν μπορούν ακόμη να στείλουν τα σχόλιά τους με το ταχυδρομείο.",
    "ar": "سينشر المجلس نتائج الاستطلاع في الشهر المقبل. ولا يزال بإمكان السكان الذين لم يشاركوا إرسال ملاحظاتهم عن طريق البريد.",
    "he": "המועצה תפרסם את תוצאות הסקר בחודש הבא. תושבים שלא השתתפו עדיין יכולים לשלוח את הערותיהם בדואר.",
    "hi": "परिषद अगले महीने सर्वेक्षण के परिणाम प्रकाशित करेगी। जिन निवासियों ने भाग नहीं लिया, वे अब भी डाक से अपनी टिप्पणियाँ भेज सकते हैं।",
    "ja": "市議会は来月、調査の結果を公表する予定です。参加しなかった住民も、まだ郵便で意見を送ることができます。",
    "zh-Hans": "市议会将于下个月公布调查结果。没有参加调查的居民仍然可以通过邮寄方式提交意见。",
    "ko": "시의회는 다음 달에 설문 조사 결과를 발표할 예정입니다. 참여하지 않은 주민들도 아직 우편으로 의견을 보낼 수 있습니다.",
    "th": "สภาเมืองจะเผยแพร่ผลการสำรวจในเดือนหน้า ผู้อยู่อาศัยที่ไม่ได้เข้าร่วมยังสามารถส่งความคิดเห็นทางไปรษณีย์ได้",
    "tr": "Belediye meclisi anketin sonuçlarını gelecek ay yayımlayacak. Ankete katılmayan sakinler görüşlerini hâlâ postayla gönderebilir.",
    "vi": "Hội đồng sẽ công bố kết quả khảo sát vào tháng tới. Những cư dân chưa tham gia vẫn có thể gửi ý kiến của mình qua đường bưu điện.",
    "fi": "Neuvosto julkaisee kyselyn tulokset ensi kuussa. Asukkaat, jotka eivät osallistuneet, voivat vielä lähettää kommenttinsa postitse.",
}
FIRST = {
    "en": "The council will publish the results of the survey next month.",
    "de": "Der Rat wird die Ergebnisse der Umfrage im nächsten Monat veröffentlichen.",
    "fr": "Le conseil publiera les résultats de l'enquête le mois prochain.",
    "es": "El ayuntamiento publicará los resultados de la encuesta el mes que viene.",
    "ru": "Совет опубликует результаты опроса в следующем месяце.",
    "el": "Το συμβούλιο θα δημοσιεύσει τα αποτελέσματα της έρευνας τον επόμενο μήνα.",
    "ar": "سينشر المجلس نتائج الاستطلاع في الشهر المقبل.",
    "he": "המועצה תפרסם את תוצאות הסקר בחודש הבא.",
    "hi": "परिषद अगले महीने सर्वेक्षण के परिणाम प्रकाशित करेगी।",
    "ja": "市議会は来月、調査の結果を公表する予定です。",
    "zh-Hans": "市议会将于下个月公布调查结果。",
    "ko": "시의회는 다음 달에 설문 조사 결과를 발표할 예정입니다.",
    "th": "สภาเมืองจะเผยแพร่ผลการสำรวจในเดือนหน้า",
    "tr": "Belediye meclisi anketin sonuçlarını gelecek ay yayımlayacak.",
    "vi": "Hội đồng sẽ công bố kết quả khảo sát vào tháng tới.",
    "fi": "Neuvosto julkaisee kyselyn tulokset ensi kuussa.",
}


@pytest.mark.parametrize("target", WHOLE)
@pytest.mark.parametrize("source", ["en", "de", "ja", "ar", "zh-Hans", "hi"])
def test_a_whole_translation_passes(source: str, target: str) -> None:
    assert not lacks(WHOLE[source], WHOLE[target], source, target)


@pytest.mark.parametrize("target", FIRST)
@pytest.mark.parametrize("source", ["en", "de", "ja", "ar", "zh-Hans", "hi"])
def test_a_missing_second_sentence_is_found(source: str, target: str) -> None:
    assert lacks(WHOLE[source], FIRST[target], source, target)


@pytest.mark.parametrize(
    ("source", "output", "source_lang", "target_lang"),
    [
        # ends at a clause
        ("Although the bridge was repaired last summer, lorries over seven tonnes still have to use the road through the village.",
         "Obwohl die Brücke im letzten Sommer repariert wurde.", "en", "de"),
        ("Although the bridge was repaired last summer, lorries over seven tonnes still have to use the road through the village.",
         "Хотя мост отремонтировали прошлым летом.", "en", "ru"),
        ("Although the bridge was repaired last summer, lorries over seven tonnes still have to use the road through the village.",
         "虽然这座桥去年夏天修好了。", "en", "zh-Hans"),
        # ends within a sentence, with a full stop
        ("The museum keeps a collection of old maps that fishermen from the islands drew on the sails of their boats.",
         "Le musée conserve une collection de cartes.", "en", "fr"),
        ("The museum keeps a collection of old maps that fishermen from the islands drew on the sails of their boats.",
         "博物館は古い地図を所蔵しています。", "en", "ja"),
        ("Das Museum bewahrt eine Sammlung alter Karten auf, die Fischer der Inseln auf die Segel ihrer Boote gezeichnet haben.",
         "The museum keeps a collection of old maps.", "de", "en"),
        ("博物馆收藏了一批古老的地图，这些地图是岛上的渔民画在船帆上的，其中最早的一张已有三百年历史。",
         "The museum keeps a collection of old maps.", "zh-Hans", "en"),
        # the first sentence is missing
        ("Please close all the windows before you leave the building. The heating is switched off automatically in the evening.",
         "Die Heizung schaltet sich abends automatisch ab.", "en", "de"),
        ("Please close all the windows before you leave the building. The heating is switched off automatically in the evening.",
         "ताप व्यवस्था साँझ आफैँ बन्द हुन्छ।", "en", "ne"),
    ],
)  # fmt: skip
def test_half_an_answer_is_found(source: str, output: str, source_lang: str, target_lang: str) -> None:
    findings = check(source, output, Expectation(source_lang, target_lang))

    assert Guard.INCOMPLETE in {found.guard for found in findings}


@pytest.mark.parametrize(
    ("source", "output", "source_lang", "target_lang"),
    [
        ("Are you sure that you want to log out?", "Wirklich abmelden?", "en", "de"),
        ("Thank you very much for your message!", "Danke für Ihre Nachricht!", "en", "de"),
        ("How old are you?", "几岁？", "en", "zh-Hans"),
        ("There is nothing that you can do about it.", "しかたがありません。", "en", "ja"),
        ("We are going to the sea at the weekend.", "Asteburuan itsasora goaz.", "en", "eu"),
        ("Est-ce que les voisins connaissent déjà les enfants ?", "Kennen die Nachbarn die Kinder schon?", "fr", "de"),
        # two sentences become one
        ("The shop was closed. So we had to come back the next morning with all of our empty bottles.",
         "Da der Laden geschlossen war, mussten wir am nächsten Morgen mit all unseren leeren Flaschen wiederkommen.", "en", "de"),
        # an abbreviation ends no sentence
        ("Bring your own tools, e.g. a hammer, a saw, etc. and ask Mr. Miller for the key to the workshop.",
         "Bringen Sie eigenes Werkzeug mit, etwa Hammer und Säge, und fragen Sie Herrn Miller nach dem Werkstattschlüssel.", "en", "de"),
        # Latin names in other scripts are as long as they are
        ("Install PostgreSQL, RabbitMQ and Elasticsearch on server DB-01, then restart Kubernetes.",
         "在服务器 DB-01 上安装 PostgreSQL、RabbitMQ 和 Elasticsearch，然后重启 Kubernetes。", "en", "zh-Hans"),
        ("https://example.org/a/very/long/address/that/stays/as/it/is", "https://example.org/a/very/long/address/that/stays/as/it/is", "en", "ja"),
        # signs of ASCII in other scripts, too, and numbers of arguments do not count
        ("來源列表 %2$s 中的第 %1$u 行的格式錯誤（類型）", "Malformed line %u in source list %s (type)", "zh-Hant", "en"),
        ("地址条目“%2$s”中有未支持的键“%1$s”", "Unsupported key “%s” in address entry “%s”", "zh-Hans", "en"),
        ("이름 바꾸기가 실패했습니다. %s (%s -> %s).", "rename failed, %s (%s -> %s).", "ko", "en"),
        # languages that the table does not have
        ("The council will publish the results of the survey next month.", "Il cunsegl publitgescha ils resultats da la retschertga il proxim mais.", "en", "rm"),
        ("", "", "en", "de"),
        ("...", "", "en", "tlh"),
    ],
)  # fmt: skip
def test_terse_translations_pass(source: str, output: str, source_lang: str, target_lang: str) -> None:
    assert not lacks(source, output, source_lang, target_lang)


def test_sizes_are_lengths_in_english() -> None:
    sizes = [size(text, tag) for tag, text in WHOLE.items()]

    assert max(sizes) < 1.5 * min(sizes)


def test_an_unknown_language_is_as_dense_as_its_script() -> None:
    assert density("zh-Hant-TW") == density("zh-Hant") == density("zh-TW")
    assert density("zh") == density("zh-CN") == density("zh-Hans")
    assert density("pt-PT") == density("pt")
    assert density("de-AT") == density("de")
    assert density("no") == density("nb")
    assert 1.0 < density("nds") < 1.2
    assert density("lzh") < 0.5


def test_a_short_answer_is_weaker_evidence_where_lengths_vary_widely() -> None:
    assert width("en") == width("en-US") == 1.0
    assert width("tlh") > 1.0
    assert width("sw") == width("sw-KE") > 1.3

    half_in_swahili, half_in_danish = (evidence(WHOLE["en"], "a" * 65, "en", tag) for tag in ("sw", "da"))
    assert half_in_swahili is not None
    assert half_in_danish is not None
    assert half_in_swahili.length > half_in_danish.length


def test_time_grows_linearly() -> None:
    def taken_s(times: int) -> float:
        source, output = WHOLE["en"] * times, FIRST["de"] * times
        start_s = time.perf_counter()
        lacks(source, output, "en", "de")
        return time.perf_counter() - start_s

    taken_s(1)
    assert min(taken_s(800) for _ in range(3)) < 40 * max(taken_s(100) for _ in range(3))
