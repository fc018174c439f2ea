"""Scripts of languages and of texts.

Source: https://www.unicode.org/reports/tr24/ for scripts; CLDR's likely subtags (through langcodes) for the
script that a language is written in.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

import langcodes
import regex

WRITTEN_WITH: dict[str, frozenset[str]] = {
    "Hans": frozenset({"Han"}),
    "Hant": frozenset({"Han"}),
    "Jpan": frozenset({"Han", "Hiragana", "Katakana"}),
    "Hrkt": frozenset({"Hiragana", "Katakana"}),
    "Kore": frozenset({"Hangul", "Han"}),
}
"""Script codes of ISO 15924 that stand for other scripts or for several."""

NAMED = {
    "Latn": "Latin", "Cyrl": "Cyrillic", "Grek": "Greek", "Arab": "Arabic", "Hebr": "Hebrew", "Deva": "Devanagari",
    "Beng": "Bengali", "Guru": "Gurmukhi", "Gujr": "Gujarati", "Orya": "Oriya", "Taml": "Tamil", "Telu": "Telugu",
    "Knda": "Kannada", "Mlym": "Malayalam", "Sinh": "Sinhala", "Thai": "Thai", "Laoo": "Lao", "Mymr": "Myanmar",
    "Khmr": "Khmer", "Geor": "Georgian", "Armn": "Armenian", "Ethi": "Ethiopic", "Tibt": "Tibetan",
    "Mong": "Mongolian", "Olck": "Ol_Chiki", "Thaa": "Thaana", "Tfng": "Tifinagh", "Nkoo": "Nko", "Hang": "Hangul",
    "Hani": "Han", "Hira": "Hiragana", "Kana": "Katakana",
}  # fmt: skip

LETTERS = regex.compile(
    "|".join(rf"(?P<{name}>\p{{Script={name}}}+)" for name in sorted(set(NAMED.values())))
)

ONLY_SIMPLIFIED = frozenset(
    "这个们来时为说国会对发经现过还进动样没开见间长问门马头东车书学写万与业严两丧临丽举义乐习乡买乱争亏云亚产亲亿仅从仑仓仪价众优伙伞伟传伤伦伪体侠侣侥侦侧侨侩俩债倾储儿兑兰关兴养兽内冈册军农冯冲决况冻净凉减凑凤凭凯击凿划刘则刚创删别剑剧劝办务劳势勋区医华协单卖卢卫却厂厅历厉压厌县参双变叙叠号叹听启吗员呜响哑唤唠啊嘘团园围图圆圣场坏块坚坛坝坟坠垄垒垦堕墙壮声壳处备复够夸夹夺奋奖妇妈娱娄婴婶孙宁宝实审宪宽宾寝导寻寿将尔尘尝层岁岂岛岭币师帐帘帜带帮库应庙庞废异弃张弯弹强归当录彻径忆忧怀态怜总恋恳恶惊惧惩惯愤愿懒戏战户扑执扩扫扬抚抛护报担拟拥拦择挂挡挣挤挥损换据掳携摄摆摇敌数断无旧旷显晓晕暂术机杀杂权条杨极构枪标栈栋树桥检楼欢欧残毁毕气汇汉汤沟泪泽洁浅测济浑浓涛润涨渐温湾湿满滚滞滤灭灯灵灾炉点炼烂烛烟烦烧热爱牵牺状犹狮独狱猎猫献玛环玺珑电画畅疗疯痒痛监盖盘着矿码砖础硕确碍礼离种积称税稳穷窃竞笔筑签简类粮紧级纪纯纱纲纳纵纷纸纹线练组细织终绍结绕绘给络绝统继绩绪续维绵综绿编缓缘缝缩网罗罚罢职联聪肃肠肤肿胀胁胜脉脏脑脱脸舰艰艺节芦苏苹范茧荐荣药莲获营萧萨蓝虑虽蚀蚂蛮补装触订计认讨让训议记讲许论设访证评识词译试诗话询该详语误请诸诺读课谁调谈谊谋谢谣谱贝负贡财责贤败货质贩贪购贫贯贴贵贸费贺赖赛赞赢赵趋跃踪车轨软转轮轰轻载较辅辆辈输辞边达迁运近违连迟选遗邮邻释钟钢钱铁铃铜银锁错锋锐锦键镇镜闪闭闲闻闹阅队阳阴阵阶际陆陈险随隐难雾静韩页顶项顺须顽顾顿预领频题颜额风飞饭饮饱饼馆驱驶驻验骂骑鱼鲁鲜鸟鸡鸣鸭鸿鹰麦黄齐齿龄龙龟"
)
"""Characters of Simplified Chinese that are rare in Traditional texts."""

ONLY_TRADITIONAL = frozenset(
    "這個們來時為說國會對發經現過還進動樣沒開見間長問門馬頭東車書學寫萬與業嚴兩喪臨麗舉義樂習鄉買亂爭虧雲亞產親億僅從倉儀價眾優夥傘偉傳傷倫偽體俠侶偵側僑倆債傾儲兒兌蘭關興養獸內岡冊軍農馮衝決況凍淨涼減湊鳳憑凱擊鑿劃劉則剛創刪別劍劇勸辦務勞勢勳區醫華協單賣盧衛卻廠廳歷厲壓厭縣參雙變敘疊號嘆聽啟嗎員嗚響啞喚團園圍圖圓聖場壞塊堅壇壩墳墜壟壘墾墮牆壯聲殼處備復夠誇夾奪奮獎婦媽娛婁嬰嬸孫寧寶實審憲寬賓寢導尋壽將爾塵嘗層歲豈島嶺幣師帳簾幟帶幫庫應廟龐廢異棄張彎彈強歸當錄徹徑憶憂懷態憐總戀懇惡驚懼懲慣憤願懶戲戰戶撲執擴掃揚撫拋護報擔擬擁攔擇掛擋掙擠揮損換據擄攜攝擺搖敵數斷無舊曠顯曉暈暫術機殺雜權條楊極構槍標棧棟樹橋檢樓歡歐殘毀畢氣匯漢湯溝淚澤潔淺測濟渾濃濤潤漲漸溫灣濕滿滾滯濾滅燈靈災爐點煉爛燭煙煩燒熱愛牽犧狀猶獅獨獄獵貓獻瑪環璽瓏電畫暢療瘋癢監蓋盤礦碼磚礎碩確礙禮離種積稱稅穩窮竊競筆築簽簡類糧緊級紀純紗綱納縱紛紙紋線練組細織終紹結繞繪給絡絕統繼績緒續維綿綜綠編緩緣縫縮網羅罰罷職聯聰肅腸膚腫脹脅勝脈臟腦脫臉艦艱藝節蘆蘇蘋範繭薦榮藥蓮獲營蕭薩藍慮雖蝕螞蠻補裝觸訂計認討讓訓議記講許論設訪證評識詞譯試詩話詢該詳語誤請諸諾讀課誰調談誼謀謝謠譜貝負貢財責賢敗貨質販貪購貧貫貼貴貿費賀賴賽贊贏趙趨躍蹤車軌軟轉輪轟輕載較輔輛輩輸辭邊達遷運違連遲選遺郵鄰釋鐘鋼錢鐵鈴銅銀鎖錯鋒銳錦鍵鎮鏡閃閉閒聞鬧閱隊陽陰陣階際陸陳險隨隱難霧靜韓頁頂項順須頑顧頓預領頻題顏額風飛飯飲飽餅館驅駛駐驗罵騎魚魯鮮鳥雞鳴鴨鴻鷹麥黃齊齒齡龍龜裡麼後"
)
"""Characters of Traditional Chinese that are rare in Simplified texts."""


@lru_cache(maxsize=1024)
def scripts_of_language(tag: str) -> frozenset[str]:
    """Unicode names of the scripts a language is written in; empty if they are not known.

    Args:
        tag: BCP-47 tag, such as `sr-Latn` or `ja`.
    """
    code = langcodes.Language.get(tag).maximize().script or ""
    if code in WRITTEN_WITH:
        return WRITTEN_WITH[code]
    return frozenset({NAMED[code]}) if code in NAMED else frozenset()


RIGHT_TO_LEFT = frozenset({"Adlm", "Arab", "Aran", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"})
"""Script codes of ISO 15924."""


def is_right_to_left(tag: str) -> bool:
    """Whether a language, a BCP-47 tag, is written from right to left."""
    return langcodes.Language.get(tag).maximize().script in RIGHT_TO_LEFT


ASCII_LETTERS = re.compile("[A-Za-z]+")
"""Taken away first: properties of Unicode take ten times as long to look up."""


def scripts_of_text(text: str) -> Counter[str]:
    """How many letters of each script a text has, by the script's Unicode name."""
    counts: Counter[str] = Counter()
    rest = ASCII_LETTERS.sub("", text)
    if len(rest) < len(text):
        counts["Latin"] = len(text) - len(rest)
    if rest.isascii():
        return counts
    for found in LETTERS.finditer(rest):
        counts[found.lastgroup or ""] += len(found[0])
    return counts


def chinese_script(text: str) -> str | None:
    """`Hans` or `Hant`, by characters that only one of them has; None if they say nothing."""
    simplified = sum(character in _HANS for character in text)
    traditional = sum(character in _HANT for character in text)
    if simplified == traditional:
        return None
    return "Hans" if simplified > traditional else "Hant"


_HANS = ONLY_SIMPLIFIED - ONLY_TRADITIONAL
_HANT = ONLY_TRADITIONAL - ONLY_SIMPLIFIED
