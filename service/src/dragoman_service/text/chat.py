"""Detects and removes text that chat models write around a translation or instead of it."""

from __future__ import annotations

from functools import lru_cache

import langcodes
import regex

THINKING = regex.compile(
    r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|$)|<\|channel\|?>(?:thought|analysis).*?(?:<\|?channel\|?>|<\|message\|>|$)"
    r"|^.*?</think(?:ing)?>",
    regex.DOTALL | regex.IGNORECASE,
)
SPECIAL = regex.compile(
    r"<end_of_turn>|<start_of_turn>|<\|im_(?:end|start)\|>|<\|endoftext\|>|<\|eot_id\|>|</?s>(?=\s*$)|<eos>"
)

TRANSLATION = (
    r"translat(?:ion|ed)|übersetz(?:ung|t)|traduction|traducción|traduzione|tradução|vertaling|översättning|"
    r"oversættelse|oversettelse|käännös|tłumaczenie|překlad|preklad|fordítás|traducere|çeviri|перевод|переклад|превод|"
    r"μετάφραση|תרגום|ترجمة|الترجمة|ترجمه|अनुवाद|翻译|翻譯|译文|譯文|翻訳|번역|bản dịch|terjemahan|คำแปล|অনুবাদ"
)
CHATTER = regex.compile(
    rf"^\W*(?:[^\n:：]{{0,80}}\b)?(?:{TRANSLATION})[^\n:：]{{0,60}}[:：]"
    rf"|^\W*(?:以下是|这是|下面是|以下は|다음은)[^\n:：]{{0,40}}[:：]"
    r"|^\W*(?:sure|certainly|of course|absolutely|okay|natürlich|gerne|selbstverständlich|bien sûr|certainement|"
    r"claro|por supuesto|certo|certamente|конечно|当然|好的)\b[^\n:：]{0,80}[:：]\s"
    r"|^\W*(?:here(?:'s| is| you go)|hier ist|voici|aquí (?:está|tiene)|ecco)\b[^\n:：]{0,80}[:：]\s",
    regex.IGNORECASE,
)
LABEL = regex.compile(rf"^\W*(?:{TRANSLATION})\b|(?:{TRANSLATION})\W*$", regex.IGNORECASE)
COLON = regex.compile(r"(?<!\d)[:：]|[:：](?!\d)")
"""Of a label; none between the digits of a time."""
NOTE = regex.compile(
    r"\n[^\S\n]*+[(*\[]*+(?:note|notes|explanation|please note|translator'?s note|alternatively|literal(?:ly)?|"
    r"let me know|i hope|anmerkung|hinweis|erklärung|remarque|note de|nota|explicación|observação|примечание|пояснение|"
    r"注|说明|說明|註|備註|注意|補足|解説|참고|설명|टिप्पणी|नोट|ملاحظة)\b?[^\n]{0,40}?(?:[:：]|\b[^\n]*$)",
    regex.IGNORECASE,
)
REFUSAL = regex.compile(
    r"^\W*(?:i'?m sorry,? (?:but )?(?:i|as)|i (?:cannot|can't|am unable to|won't)|as an ai\b|i am an ai\b|"
    r"als ki\b|es tut mir leid,? (?:aber )?(?:ich kann|als)|je suis désolée?,? (?:mais )?je ne peux|"
    r"en tant qu'ia|lo siento,? (?:pero )?(?:no puedo|como)|como (?:una )?ia\b|извините,? (?:но )?я не могу|"
    r"抱歉，?我(?:无法|不能)|作为(?:一个)?(?:ai|人工智能)|申し訳ありませんが|죄송하지만)",
    regex.IGNORECASE,
)
SORRY = regex.compile(
    r"\b(?:sorry|cannot|can't|unable|won't|ai|ki|ia|désolée?|siento|puedo|kann|leid|извините)\b|"
    r"抱歉|对不起|無法|无法|不能|申し訳|すみません|できません|죄송|미안|माफ|عذرا|آسف",
    regex.IGNORECASE,
)
ORDER = regex.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|prompt|rule|above|previous|text|task|translat)"
    r"|\b(?:do not|don't|stop|instead of) translat"
    r"|\b(?:reply|respond|answer|output|print|say|write)\b.{0,20}\b(?:only|just|exactly|with)\b"
    r"|\b(?:system prompt|your (?:instructions|prompt|rules)|you are now|act as|pretend)\b"
    r"|\b(?:ignoriere?|vergiss)\b.{0,40}\b(?:anweisung|text|regel)|\b(?:antworte|schreibe?|gib)\b.{0,20}\bnur\b"
    r"|\b(?:ignorez?|oublie[zr]?)\b.{0,40}\b(?:instruction|consigne)|\bréponds?(?:ez)?\b.{0,20}\b(?:seulement|uniquement)"
    r"|\b(?:ignora|olvida)\b.{0,40}\b(?:instruccion|instrucción)|\bresponde\b.{0,20}\b(?:solo|sólo|únicamente)"
    r"|игнорируй|忽略.{0,20}(?:指令|指示|说明)|不要翻译|(?:指示|命令)を無視|निर्देश.{0,30}(?:बेवास्ता|अनदेखा|नज़रअंदाज़)|تجاهل.{0,20}التعليمات",
    regex.IGNORECASE | regex.DOTALL,
)
DEMANDED = regex.compile(r"[\"'“‘«„「]([^\"'”’»“」]{1,80})[\"'”’»“」]")
WIDE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]+")
QUOTES = {
    '"': '"',
    "“": "”",
    "„": "“",
    "«": "»",
    "「": "」",
    "『": "』",
    "'": "'",
    "‘": "’",
    "`": "`",
    "”": "”",
    "»": "«",
}


def cleaned(output: str) -> str:
    """The output of a model without reasoning, special tokens and outer white space."""
    # Most outputs have none, and both patterns need one.
    if "<" not in output:
        return output.strip()
    return SPECIAL.sub("", THINKING.sub("", output)).strip()


def has_preamble(source: str, output: str, target_lang: str) -> bool:
    """Whether an answer has text around the translation, quotes it, or refuses.

    What has its counterpart in the source is part of the translation.
    """
    head = output[:300]
    if ":" in head or "：" in head:
        if CHATTER.search(head) and not LABEL.search(source[:300]) and _colons(output) > _colons(source):
            return True
        if _names_target(head, target_lang) and not COLON.search(source[:80]):
            return True
    if "\n" in output.strip() and "\n" not in source.strip() and NOTE.search(output):
        return True
    if REFUSAL.match(head) and not SORRY.search(source):
        return True
    return (_quoted(output) and source.strip()[:1] not in QUOTES) or ("```" in output and "```" not in source)


def obeys(source: str, output: str) -> bool:
    """Whether the source has instructions for a model, and the output looks as if the model followed them.

    A translation of such a text is about as long as the text; an obedient answer is short, or is the text
    that was demanded.
    """
    if not (weight(output) < 0.45 * weight(source) or _is_demanded(source, output)):
        return False
    return ORDER.search(source) is not None


def weight(text: str) -> float:
    """The length of a text in Latin letters: a character of Chinese or Japanese counts as several."""
    wide = sum(len(found[0]) for found in WIDE.finditer(text))
    return len(text) + 1.8 * wide


def _colons(text: str) -> int:
    return sum(1 for _ in COLON.finditer(text))


def _is_demanded(source: str, output: str) -> bool:
    demanded = DEMANDED.findall(source)
    return any(output.strip(" .!\"'").casefold() == each.strip(" .!").casefold() for each in demanded)


def _names_target(head: str, target_lang: str) -> bool:
    label = head.partition(":")[0].partition("：")[0].strip(" *#[(").lower()
    return label != head.strip().lower() and label.removeprefix("in ").removesuffix(" version") in _names(
        target_lang
    )


@lru_cache(maxsize=256)
def _names(tag: str) -> frozenset[str]:
    """The names of a language, in English and in the language itself."""
    language = langcodes.Language.get(langcodes.Language.get(tag).language or "und")
    return frozenset({language.display_name("en").lower(), language.autonym().lower()})


def _quoted(text: str) -> bool:
    stripped = text.strip()
    if len(stripped) < 2 or QUOTES.get(stripped[0]) != stripped[-1]:
        return False
    return stripped[0] not in stripped[1:-1]
