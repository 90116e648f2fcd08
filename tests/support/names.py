"""Names in twelve scripts, made of syllables as they occur in real ones."""

from __future__ import annotations

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
