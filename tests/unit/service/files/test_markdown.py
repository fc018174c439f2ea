"""Markdown: all but the words of a translated paragraph stays byte for byte, and new text is no mark."""

import pytest
from markdown_it import MarkdownIt
from tests.unit.service.files.test_documents import translated

from dragoman_service.files.kinds import read

KEPT = [
    "A [\\*b\\*] 2 * 3 [note] f_g `c*d` ~ <3 & \\_e\\_ &nbsp; &copy; C:\\dir f\n",
    "> One two\n> three *four\n> five* six\n\n- seven\n  eight\n\n9. ten\n   eleven\n",
    "[**bold**](a_b.md 'T') ![i](j) [k][l] [l] [m][]  \n***n***\\\no `` p ` q `` <r@s.t> <b\nid='u'>v</b>\n\n"
    "[l]: w\n[m]: x\n",
    "| A | B |\n|:--|--:|\n| one \\| two | [[c\\|d]] three |\n",
    "Say {{< ref \"a_b\" >}} and [this]({{< ref \"c d\" >}} \"E\") or @{{sub . 0}} {{ $x :=\n  f }} now.\n",
    "See [[Page|it]] but [[3]](#c_d_e) too, $a_b$ and\n$$\nx^2_a\n$$\nend ^block-id\n",
    ":::{note}\n:class: tip dropdown\nA text{l=python} here{ .x #y }.\n:::\n",
    "Text \\begin{gather*}a_1 & b\\end{gather*} more %%a comment%% end.\n",
    "Title one\n  two\n===\n\n# Three # four #\n",
    "Line one \nline two\twords\n   line three\n",
]  # fmt: skip


@pytest.mark.parametrize("source", KEPT)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_only_words_change(source: str, end: str) -> None:
    content = source.replace("\n", end).encode()
    file = read("a.md", content, "en-GB")
    back = await translated(file)
    assert back.decode().casefold() == content.decode().casefold()
    assert back != content
    for code in ("a_b", "c*d", "r@s.t", "{{sub . 0}}", "{l=python}", ":class: tip dropdown", "x^2_a"):
        assert (code in back.decode()) == (code in source), code


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("A [note] here\n", "Eine *neue* [note] hier", "Eine \\*neue\\* [note] hier\n"),
        ("A [note] here\n", "Eine [note]: hier", "Eine [note]: hier\n"),
        ("A b\n", "2 * 3 und a_b", "2 * 3 und a_b\n"),
        ("A b\n", "1. a", "1\\. a\n"),
        ("A\nb c\n", "eins\n- zwei", "eins\n\\- zwei\n"),
        ("A b\n", "$x_1$ {{&lt; y &gt;}}", "\\$x_1$ \\{{\\< y >}}\n"),
        ("A \\*b\\* c\n", "*d* e *f* g", "\\*d\\* e \\*f\\* g\n"),
        ("A&nbsp;b\n", "c\u00a0d", "c&nbsp;d\n"),
        ("See [One]\n\n[one]: u\n", 'Siehe <g id="0">Eins</g>', "Siehe [Eins][One]\n\n[one]: u\n"),
        ("> a b\n> c d\n", "一二", "> 一二\n"),
        ("- a b\n  c d\n", "e f\ng h", "- e f\n  g h\n"),
    ],
)
def test_new_text_is_escaped_only_where_it_would_be_a_mark(
    source: str, translation: str, expected: str
) -> None:
    file = read("a.md", source.encode(), "de")
    back = file.rebuild([translation]).decode()
    assert back == expected
    kinds = [token.type for token in MarkdownIt("commonmark").parse(source)]
    assert [token.type for token in MarkdownIt("commonmark").parse(back)] == kinds


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("a b\r\nc d\n\n    e\r", "f g\nh i", "f g\r\nh i\n\n    e\r"),
        ("> a b\r\n> c d", "一二", "> 一二"),
        ("---\na: b\n---\r\nc d\n", "e", "---\na: b\n---\r\ne\n"),
    ],
)
def test_line_ends_stay_where_they_are_mixed(source: str, translation: str, expected: str) -> None:
    file = read("a.md", source.encode(), "de")
    assert file.rebuild(file.texts) == source.encode()
    assert file.rebuild([translation]) == expected.encode()


def test_front_matter_alone_stays() -> None:
    assert read("a.md", b"---\r\na: b\n---", "de").rebuild(()) == b"---\r\na: b\n---"


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("{{< highlight go >}}", "{{< /highlight >}}"),
        ('{{< tab header="a" lang="yaml" >}}', "{{< /tab >}}"),
        ("{% highlight ruby %}", "{% endhighlight %}"),
        ("{%- raw -%}", "{%- endraw -%}"),
    ],
)
async def test_code_between_shortcodes_stays(begin: str, end: str) -> None:
    source = f"a b\n{begin}\nmodule:\n  c d\n\n    - e\n- f\n{end}\ng h\n"
    file = read("a.md", source.encode(), "en-GB")
    assert file.texts == ("a b", "g h")
    assert (await translated(file)).decode() == source.replace("a b", "A B").replace("g h", "G H")
    assert len(read("a.md", f"{begin}\nb c\n".encode(), "de").texts) == 1
