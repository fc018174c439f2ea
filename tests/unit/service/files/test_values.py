"""Which values of data files are translated."""

import json

import pytest

from dragoman_service.files.kinds import read
from dragoman_service.files.values import is_language

SENTENCES = (
    "欢迎回来,{user_name}!",
    "用户名/密码不正确,请重新输入。",
    "版本2.0已经发布,请更新您的应用程序。",
    "请访问example.com了解更多详情。",
    "文件{file_name}已删除",
    "ファイル/フォルダを選択してください",
    "ชื่อผู้ใช้/รหัสผ่านไม่ถูกต้อง",
    "ຊື່ຜູ້ໃຊ້/ລະຫັດຜ່ານບໍ່ຖືກຕ້ອງ",
    "ឈ្មោះ/ពាក្យសម្ងាត់មិនត្រឹមត្រូវ",
    "#新话题",
    "Hello,{user_name}!",
    "Total:{total_count}",
    "{first_name},welcome!",
    "Save",
    "你好",
    "Two words",
    "See /etc/hosts or a_b now",
)
CODE = (
    "icons/open.svg",
    "icons/{icon_name}.svg",
    "/api/{user_id}/items",
    "user.{item_id}.name",
    "C:\\Users\\me",
    "https://example.org/a_b?c=d",
    "https://zh.wikipedia.org/wiki/中文",
    "/图片/图标.png",
    "./数据/表.csv",
    "me@example.org",
    "user_name",
    "app.title",
    "#fff",
    "#a1b2c3",
    ".button",
    "$primary",
    "v1.2.3",
    "2.0.0-rc.1",
    "a=b&c=d",
    "{user_name}",
    "{first_name}.{last_name}",
    "%1$s",
    "{{count}}",
    "12.5",
    "",
)


@pytest.mark.parametrize("value", SENTENCES)
def test_a_sentence_is_translated_though_it_has_no_blanks(value: str) -> None:
    assert is_language(value)


@pytest.mark.parametrize("value", CODE)
def test_code_is_left_alone(value: str) -> None:
    assert not is_language(value)


@pytest.mark.parametrize("value", ["https://a_" + "a.b_" * 500, "a_" * 100_000, "{a_b}/" * 50_000])
def test_a_long_value_is_judged_in_linear_time(value: str) -> None:
    assert isinstance(is_language(value), bool)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(dict(enumerate(SENTENCES)))),
        ("a.arb", json.dumps(dict(enumerate(SENTENCES)))),
        ("a.yaml", "".join(f"- {json.dumps(each, ensure_ascii=False)}\n" for each in SENTENCES)),
        ("a.csv", "".join(f'1,"{each}"\n' for each in SENTENCES)),
        ("a.tsv", "".join(f"1\t{each}\n" for each in SENTENCES)),
        (
            "a.resx",
            "<root>"
            + "".join(
                f"<data name='k{n}' xml:space='preserve'><value>{each}</value></data>"
                for n, each in enumerate(SENTENCES)
            )
            + "</root>",
        ),
    ],
)
def test_all_data_files_have_these_sentences(name: str, content: str) -> None:
    assert read(name, content.encode(), "de").texts == SENTENCES
