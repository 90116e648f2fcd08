"""Names in twelve scripts, made of syllables as they occur in real ones."""

from collections.abc import Callable
from random import Random

# ruff: noqa: RUF001, SIM905

SYLLABLES = {
    "latin": "ma ri jo an lu ka pe to el sa be no ra vi chi der son ley mar tin".split(),
    "with accents": "é lá ño ü br ö ç ja ří ná å ø st ra ß ł".split(),
    "turkish": "İr em Iş ık ğü ne ş".split(),
    "cyrillic": "ма рий ив ан ов на та лё пе тр".split(),
    "greek": "μα ρί αν νη γι ώρ γο ς".split(),
    "han": "李 王 张 小 明 龙 国 华 伟 芳".split(),
    "kana": "た なか ガ とう すず ぎ やま だ".split(),
    "hangul": "김 이 박 민 수 지 영 현".split(),
    "arabic": "مح مد علي حس ن فا طمة".split(),
    "hebrew": "דו יד שר ה מש יע קב".split(),
    "devanagari": "रा म सी ता कृ ष्ण ला ल".split(),
    "thai": "สม ชา ย สุ ดา มา ลี".split(),
}


def _maker(syllables: list[str]) -> Callable[[Random], str]:
    def make(chosen: Random) -> str:
        words = ("".join(chosen.choices(syllables, k=chosen.randint(2, 4))) for _ in range(2))
        return chosen.choice((" ", "-")).join(word.capitalize() for word in words)

    return make


#: Each makes a name of its script.
NAMES = [_maker(syllables) for syllables in SYLLABLES.values()]

#: Names, and how they are typed on phones: what finds them.
OTHERWISE = [
    (label, typed)
    for label, ways in {
        "O'Neil": "O’Neil|oneil|o neil|o`neil|oʼneil|O´Neil|o＇neil|neil|o'n",
        "O’Neil Smith": "smith o'neil|smith oneil|o neil smith|neil",
        "Oneil Smith": "o'neil|smith o’neil|o-neil",
        "Мар'яна": "мар’яна|маряна|марʼяна",
        "Jean-Paul": "jean paul|jean‐paul|jean‑paul|jean–paul|jean—paul|jean−paul|jeanpaul|Jean﹣Paul|jean-|paul",
        "Jean–Paul Smith": "jean-paul|smith jean-p|smith jeanpaul|paul smith|jeanpaul s",
        "Jeanpaul": "jean-paul",
        "Jean Paul": "jean-paul",
        "בן־גוריון": "בן-גוריון|בן גוריון|בןגוריון",
        "א״ב": "א\"ב|אב|א''ב",
        "ג׳ורג׳": "ג'ורג|גורג",
        "St. John": "st john|st. john|st.john|John St",
        "J.R.R. Tolkien": "jrr tolkien|j r r tolkien|j. r. r. tol|jrr|tolkien",
        "J. R. R. Tolkien": "jrr tolkien|j.r.r. tol",
        "マイケル・ジャクソン": "マイケル ジャクソン|マイケルジャクソン|ﾏｲｹﾙ･ｼﾞｬｸｿﾝ|まいける|ジャクソン",
        "Gal·la": "galla|gal la",
        "Þór": "thor|þor",
        "Ŋgũgĩ wa Thiong'o": "ngugi|ngũgĩ|thiongo|thiong’o ngugi",
        "Đặng Łukasz Ørsted Æsop Straße Œdipe": "dang|lukasz|orsted|aesop|strasse|oedipe",
        "Ələkbər Ɔkɛ Ɓala ɣ": "elekber|oke|bala|g",
        "Қайрат Ғабит": "кайрат|габит кай",
        "علی کریم": "علي|كريم",
        "أحمد فاطمة": "احمد|فاطمه",
        "٤٢ ４２ ४२": "42 42 42",
        "ʿAlī al-Qurʾān": "ali|quran|alquran|al quran",
        "ʻOkina": "okina|'okina",
        "Ann ❤️ Smith": "ann smith|ann ❤|❤ ann|smith ann|❤️|ann ❤️ smith",
        "An❤na": "anna|an na|❤",
        "👩🏽‍🚀 Sally": "sally|👩🚀|👩 sally",
        "김소월": "ㄱㅣㅁ|ㄱㅣㅁㅅㅗㅇㅜㅓㄹ|김ㅅ|기ㅁ|\u1100\u1175\u11b7\u1109",
        "ㄱㅣㅁㅅㅗ": "김소",
        "김 소월": "김소월|소월",
        "李 白": "李白|白",
        "山田太郎": "山田 太郎",
        "Լևոն": "լեվոն|ԼԵՎՈՆ|լեւոն|ԼԵՒ",
        "Size 3×4": "3x4|3×4|4",
        "2½ m": "½|2 1/2|2½|1/2",
        "5€ or US$6": "€|$|5€|6|us$",
        "ಕೊರಿಯಾ": "ಕೆ|ಕೊ|ಕೊ",
        "ஔவை": "ஒ|ஔ",
        "한국": "하|한|ㅎ|한구|한ㄱ",
        "하나 닭": "한|하나|다|달|닭",
        "최권상 곽의": "초|최|최구|최궈|최권|최권ㅅ|고|과|곽ㅇ|곽으|곽의",
        "값진 앉는 넋": "가|갑|값|값ㅈ|안|앉|넉|넋",
        "넉살": "넋",
        "고이": "공",
        "ǃXóõ Nǃxau": "xoo|!xóõ|ǃx|nxau|n!xau|xau",
        "Ɂehdzo Saʔi": "ehdzo|'ehdzo|ɂe|sai|sa'i",
        "D’Angelo L´Écuyer": "dangelo|d'angelo|lecuyer d’a|l'é|angelo",
        "Римский‑Корсаков": "римский-корсаков|римский корсаков|корсаков рим",
        "Ann Smith": "smith ann|smi a|smith, ann|SMITH ANN",
        "John Paul Jones": "jones john|paul john|jones paul john|john jones|jo jo",
        'Ann "Annie" (née Bell) Smith': "ann annie smith|bell|annie nee",
        "AC/DC": "acdc|ac dc|ac/dc",
        "R&D #1": "r&d|r & d|#1",
        "!!!": "!|!!!",
    }.items()
    for typed in ways.split("|")
]
#: Names, and what does not find them.
NOT_OTHERWISE = [
    ("Ann Smith", "smitha"),
    ("Ann Smith", "annsmith"),
    ("Ann Smith", "ann ann"),
    ("Ann Smith", "smith bob"),
    ("Jean-Paul", "aul"),
    ("O'Neil", "eil"),
    ("한국", "국한국"),
    ("하", "한"),
    ("ハ", "バ"),
    ("고", "과"),
    ("달", "닭"),
    ("과", "거"),
]
