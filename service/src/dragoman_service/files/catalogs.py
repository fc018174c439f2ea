"""Gettext catalogs, .po and .pot: messages without a translation, and fuzzy ones, get one.

All else stays byte for byte: the lines of other messages, comments, line ends.

Source: https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.document import FileDocument
from dragoman_service.files.messages import FORMAT, NON_SPLITTING_TAGS, SPLITTING_TAGS, Message
from dragoman_service.files.plain import decoded, known_encoding, marked_encoding
from dragoman_service.files.plural_forms import PluralForms, plural_forms, plural_forms_of
from dragoman_service.files.values import LETTER
from dragoman_service.text.placeholders import placeholders

CHARSET = re.compile(rb"^\"Content-Type:[^\"\n]*?charset=([\w.:-]{1,40})", re.MULTILINE | re.IGNORECASE)
"""In the header."""

LONG_LINE = 100
"""A file with a longer line of text is not wrapped."""
WRAP = 76

LINE = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{1,2})\])?[ \t]*(?=\")|(?=\")")
STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"[ \t]*')
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
MEANINGS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "v": "\v", "f": "\f"}
WRITTEN = {
    **{meaning: f"\\{sign}" for sign, meaning in MEANINGS.items() if sign not in "vf"},
    "\\": "\\\\",
    '"': '\\"',
}
WORD = re.compile(r"\S*\s*")
FLAGS = re.compile(r"#[,=]")
FUZZY = re.compile(r"([,=])[ \t]*fuzzy[ \t]*(?=,|$)")
ACCESS_KEYS = "&_~"


@dataclass
class _Entry:
    """One message.

    Args:
        texts: Its `msgid` and `msgid_plural`.
        forms: Its translations, by form.
        first: Number of its first line of comments.
        at: Of its first `msgstr`.
        after: Behind its last line.
        flags: Such as `fuzzy` and `c-format`.
    """

    first: int
    context: str | None = None
    texts: dict[str, str] = field(default_factory=dict)
    forms: dict[int, str] = field(default_factory=dict)
    at: int = -1
    after: int = -1
    flags: set[str] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        """Whether it lacks a translation."""
        lacks = "fuzzy" in self.flags or not all(self.forms.values())
        return lacks and LETTER.search(self.texts["msgid"]) is not None

    @property
    def families(self) -> frozenset[str]:
        """Of its placeholders."""
        return frozenset(flag.removesuffix("-format") for flag in self.flags if flag.endswith("-format"))


def read_catalog(content: bytes, target_lang: str) -> FileDocument:
    """A catalog in UTF-8 or in the encoding that its header names; it is written in UTF-8.

    Args:
        content: The file.
        target_lang: BCP-47 tag, for its header `Language` and its plural forms.

    Raises:
        BrokenFileError: It is none, or is in neither encoding.
    """
    encoding = marked_encoding(content) or _encoding(content)
    lines = re.split(r"(?<=\n)", decoded(content, encoding))
    entries = list(_entries(lines))
    header = next((each for each in entries if not each.texts["msgid"] and each.context is None), None)
    forms = _forms(header, entries, target_lang)
    open_entries = [each for each in entries if each is not header and each.is_open]
    messages = [
        [Message(text, entry.families, ACCESS_KEYS) for text in entry.texts.values()]
        for entry in open_entries
    ]
    wrap = not any(len(line) > LONG_LINE and line.lstrip().startswith(("msg", '"')) for line in lines)

    def rebuild(translations: Sequence[str]) -> bytes:
        if not translations:
            return content
        left = iter(translations)
        written: list[str | None] = [*lines]
        for entry, of_entry in zip(open_entries, messages, strict=True):
            translated = [message.written(next(left)) for message in of_entry]
            _put(entry, _filled(entry, translated, forms), written, wrap=wrap)
        if header is not None:
            text = _header(header, forms, target_lang, entries)
            if text != header.forms.get(0):
                _put(header, {0: text}, written, wrap=False)
        whole = "".join(line for line in written if line is not None)
        return whole.encode("utf-8-sig" if encoding == "utf-8-sig" else "utf-8")

    texts = tuple(message.text for each in messages for message in each)
    return FileDocument(
        texts, FORMAT, rebuild, splitting_tags=SPLITTING_TAGS, non_splitting_tags=NON_SPLITTING_TAGS
    )


def _encoding(content: bytes) -> str:
    """UTF-8 wherever it fits: many headers still have xgettext's `charset=CHARSET`, or a charset that was true once."""
    named = CHARSET.search(content)
    try:
        content.decode()
    except UnicodeDecodeError:
        return known_encoding(named[1].decode()) if named else "utf-8"
    return "utf-8"


def _entries(lines: Sequence[str]) -> Iterator[_Entry]:
    """The messages but obsolete ones."""
    entry = _Entry(0)
    key, form = "", 0
    for number, whole in enumerate(lines):
        line = whole.strip(" \t\r\n")
        found = LINE.match(line)
        if not line or line.startswith("#") or (found and found[1] in ("msgctxt", "msgid")):
            # A context comes before its message; what else begins here is the next message.
            if entry.at >= 0:
                yield entry
                entry = _Entry(number)
            if not line or line.startswith("#"):
                key = ""
                if FLAGS.match(line):
                    entry.flags |= {flag.strip() for flag in line[2:].split(",")}
                continue
        text = STRING.fullmatch(line, found.end()) if found else None
        if found is None or text is None or not (key or found[1]):
            raise BrokenFileError(
                f"the file is no gettext catalog: line {number + 1} has no keyword and string"
            )
        if found[1]:
            key, form = found[1], int(found[2] or 0)
            if (key == "msgid" and entry.texts) or (key in ("msgstr", "msgid_plural") and not entry.texts):
                raise BrokenFileError(
                    f"the file is no gettext catalog: {key} in line {number + 1} is out of place"
                )
        meaning = ESCAPE.sub(_meaning, text[1])
        if key == "msgstr":
            entry.forms[form] = entry.forms.get(form, "") + meaning
            entry.at = number if entry.at < 0 else entry.at
            entry.after = number + 1
        elif key == "msgctxt":
            entry.context = (entry.context or "") + meaning
        else:
            entry.texts[key] = entry.texts.get(key, "") + meaning
    if entry.at >= 0:
        yield entry
    elif entry.texts or entry.context is not None:
        raise BrokenFileError("the file is no gettext catalog: its last message has no msgstr")


def _meaning(found: re.Match[str]) -> str:
    sign = found[1]
    if sign[0] == "x" and len(sign) > 1:
        return chr(int(sign[1:], 16))
    return chr(int(sign, 8) & 0xFF) if sign[0] in "01234567" else MEANINGS.get(sign, sign)


def _forms(header: _Entry | None, entries: Sequence[_Entry], target_lang: str) -> PluralForms:
    """The plural forms that the header states; those of the target where it states none, or another language's."""
    of_target = plural_forms_of(target_lang)
    fields = _fields(header)
    stated = plural_forms(fields.get("plural-forms", ""))
    if stated is None:
        return of_target
    named = fields.get("language", "").lower().replace("_", "-").partition("-")[0]
    started = any(len(each.texts) > 1 and any(each.forms.values()) for each in entries)
    same = named == target_lang.lower().partition("-")[0]
    return stated if same or started or stated.count == of_target.count else of_target


def _fields(header: _Entry | None) -> dict[str, str]:
    lines = header.forms.get(0, "").split("\n") if header else []
    return {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}


def _header(header: _Entry, forms: PluralForms, target_lang: str, entries: Sequence[_Entry]) -> str:
    """The header with the target's language and plural forms, and the charset in which it is written."""
    changed = {
        "Language": target_lang.replace("-", "_"),
        "Content-Type": "text/plain; charset=UTF-8",
    }
    fields = _fields(header)
    if "content-transfer-encoding" in fields:
        changed["Content-Transfer-Encoding"] = "8bit"
    if "plural-forms" in fields or any(len(each.texts) > 1 for each in entries):
        changed["Plural-Forms"] = forms.header
    written: list[str] = []
    for line in header.forms.get(0, "").rstrip("\n").split("\n"):
        name = line.partition(":")[0].strip()
        known = next((each for each in changed if each.lower() == name.lower()), None)
        written.append(f"{name}: {changed.pop(known)}" if known else line)
    written += [f"{name}: {value}" for name, value in changed.items()]
    return "\n".join(line for line in written if line) + "\n"


def _filled(entry: _Entry, translations: Sequence[str], forms: PluralForms) -> dict[int, str]:
    """A translation for each form: that of one thing where it fits all numbers of the form."""
    if len(translations) == 1:
        return {0: translations[0]}
    one, many = translations
    kept = [sorted(each.text for each in placeholders(text)) for text in entry.texts.values()]
    same = kept[0] == kept[1]
    return {
        form: one if forms.count > 1 and (forms.ones[form] or (forms.with_one[form] and same)) else many
        for form in range(forms.count)
    }


def _put(entry: _Entry, forms: dict[int, str], lines: list[str | None], *, wrap: bool) -> None:
    """Write translations in the place of an entry's; it is not fuzzy then."""
    last = lines[entry.after - 1] or ""
    end = "\r\n" if (lines[entry.at] or "").endswith("\r\n") else "\n"
    written: list[str] = []
    for form, text in forms.items():
        keyword = f"msgstr[{form}]" if len(entry.texts) > 1 else "msgstr"
        strings = list(_strings(text, len(keyword), wrap=wrap))
        written.append(f"{keyword} {end.join(strings)}")
    lines[entry.at] = end.join(written) + (end if last.endswith("\n") else "")
    for number in range(entry.at + 1, entry.after):
        lines[number] = None
    for number in range(entry.first, entry.at):
        line = lines[number] or ""
        if FLAGS.match(line):
            body = line.rstrip("\r\n")
            rest = FUZZY.sub(r"\1", body).replace(",,", ",").rstrip(", \t")
            lines[number] = (
                line if rest == body.rstrip() else (rest + line[len(body) :] if rest[1:] else None)
            )
        elif line.startswith("#|"):
            lines[number] = None


def _strings(text: str, indent: int, *, wrap: bool) -> Iterator[str]:
    """A text in quotes: in one line, or behind an empty string a line for each of its own."""
    lines = [_quoted(line) for line in re.split(r"(?<=\n)(?!\Z)", text)]
    if len(lines) == 1 and (not wrap or len(lines[0]) + indent <= WRAP):
        yield f'"{lines[0]}"'
        return
    yield '""'
    for line in lines:
        part = ""
        for word in WORD.findall(line) if wrap else [line]:
            if part and len(part) + len(word) > WRAP:
                yield f'"{part}"'
                part = ""
            part += word
        if part:
            yield f'"{part}"'


def _quoted(text: str) -> str:
    return "".join(WRITTEN.get(sign, sign) for sign in text)
