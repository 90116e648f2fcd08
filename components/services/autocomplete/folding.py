"""
Search keys: the form in which names are compared, and other ways to write a name.

Compatibility forms become plain ones (NFKC), case is folded, accents and vowel points are removed, letters with a
stroke lose the stroke, and digits of all scripts become ASCII digits. Marks that make a different letter stay: the
vowel signs of Indic scripts, and the voicing marks of kana. Korean syllables are split into the letters that are
typed, in which a final consonant is the same as an initial one, so that whoever has typed a part of a name finds it,
however their keyboard has composed the last letters. Vowel signs of several parts are split as well, for the scripts
of India and South-East Asia. Apostrophes are removed. Hyphens, dots and other punctuation become one blank, as white
space does; the words that they join are also found when written as one word, and so are words in Chinese characters,
kana or Hangul. Each emoji becomes a word at the end of the key. Typed text is folded by the same rules, so it matches
whichever keyboard a person uses.
static/components/autocomplete/matching.js follows the same rules.
"""

# ruff: noqa: RUF001
import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from unicodedata import category, decimal, normalize

from components.exceptions import InvalidValue
from components.kit.validation import MAX_NAME, is_blank

MAX_LABEL = 200  # characters
MAX_ID = 100  # characters
MAX_PREFIX = 200  # characters
MAX_KEY = 200  # characters of a search key that count: one Arabic character can become eighteen
MAX_WORDS = 8  # words by which a name is found: each costs a member of the index
#: The version of these rules. A book stores the version by which its names were folded.
FOLDING = 4

#: Optional marks: accents, Hebrew points, Arabic vowels; and invisible characters.
_OPTIONAL = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u061c\u0640\u064b-\u065f\u0670"
    "\u115f\u1160\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u00ad\u200b-\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
#: Modifier letters, such as the half rings of transcribed Arabic; and skin tones of emoji.
_MODIFYING = re.compile(
    "[\u02b0-\u02ba\u02bd-\u02ff\u0559\u07f5\ua717-\ua721\ua788\ua78a\U0001f3fb-\U0001f3ff]"
)
#: Letters without a decomposition, each with the letter that people type if their keyboard lacks it: Latin letters,
#: Cyrillic letters that a Russian keyboard lacks, and letters in which Arabic, Persian and Urdu keyboards differ.
_PLAIN = """
    øo ðd đd ɖd ɗd łl ɫl ɬl ŧt ƭt þth ħh ɦh ŋn ɲn ɳn ıi ɨi ɩi ƙk ĸk ɓb ƀb ƈc ȼc ɠg ǥg ɣg ʉu ʊu ɔo ɵo ɛe əe ǝe ɇe ƥp
    ʋv ƴy ɏy ƶz ʒz ȥz ʃs ȷj ɉj ɍr ɽr ⱥa ɑa æae œoe ƒf
    ґг ғг ҕг қк ҝк ҡк ӄк ңн ҥн ӈн үу ұу өо әа һх ҳх ҷч ҹч ҙз ҫс ҏр җж
    \u0671\u0627 \u0649\u064a \u06cc\u064a \u06d0\u064a \u06a9\u0643
    \u0629\u0647 \u06c1\u0647 \u06be\u0647 \u06d5\u0647
"""
#: Apostrophes and inner quotation marks, also those of Hebrew; and letters for a glottal stop.
_APOSTROPHES = "'\"`\u2018-\u201f\u2032-\u2036\u02bb\u02bc\u055a\u05f3\u05f4\ua78b\ua78c\u07f4"
_APOSTROPHES += "\u0241\u0242\u0294\u0295\u02a1\u02a2"
#: Signs that NFKC turns into a blank and an accent, which people type as apostrophes; and fractions, before which a
#: blank keeps them apart from a whole number.
_BEFORE = dict.fromkeys([0xB4, 0x384, 0x1FBD, 0x1FBF, 0x1FEF, 0x1FFD, 0x1FFE], "'")
_BEFORE |= {code: f" {chr(code)}" for code in (0xBC, 0xBD, 0xBE, *range(0x2150, 0x215F), 0x2189)}
#: Characters that join words although they are not punctuation: minus, the stroke of fractions, dots between letters,
#: the double hyphen of kana, and letters for clicks, which people type as exclamation marks or leave out.
_JOINING = "=~\u2044\u2212\u2219\u22c5\ua78f\u01c0\u01c1\u01c2\u01c3"
#: Punctuation that is kept, because it distinguishes names.
_KEPT = "#%&*@"
#: Internal marks: an apostrophe, a joint between words, and the start of the emoji.
_APART, _JOINED, _SYMBOL = "\1", "\2", "\3"


class _Signs(dict[int, str]):
    """The replacement of each character. It is computed when the character first occurs."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _sign(chr(code))
        return found


def _sign(character: str) -> str:
    kind = category(character)
    if re.match(f"[{_APOSTROPHES}]", character):
        return _APART
    if _OPTIONAL.match(character) or _MODIFYING.match(character) or kind in ("Cf", "Sk"):
        return ""
    if kind in ("Cc", "Zs", "Zl", "Zp"):
        return " "
    if kind == "So":
        return _SYMBOL + character
    if character in _JOINING or (kind.startswith("P") and character not in _KEPT):
        return _JOINED
    if kind == "Nd":
        return str(decimal(character))
    if "\u3041" <= character <= "\u3096" or character in "\u309d\u309e":  # hiragana, as katakana
        return chr(ord(character) + 0x60)
    return character


_signs = _Signs({ord(each[0]): each[1:] for each in _PLAIN.split()} | {0xD7: f"x{_APART}"})
_SIMPLE = re.compile(f"[A-Za-z0-9 ]{{0,{MAX_KEY}}}")
_BLANK = re.compile(" ")
_MARKED = re.compile(f"{_SYMBOL}(.)", re.DOTALL)
#: An apostrophe that has no letter or digit on one of its sides.
_OUTER = re.compile(f"(?<![^{_JOINED} ]){_APART}+|{_APART}+(?![^\\W_])")
_BETWEEN = re.compile(f"[{_JOINED} ]+")
#: Korean syllables, and the scripts of India and South-East Asia, which are compared by the letters that are typed.
_COMPOSED = re.compile("[\uac00-\ud7a3\u0900-\u10ff\u1b00-\u1bff\U00011000-\U00011fff]+")
#: What is written without blanks: Hangul, once it is split, kana and Chinese characters.
_WIDE = re.compile("[\u1100-\u11ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
#: A letter or digit after something else, which may be a mark on a letter; and a sign after one.
_START = re.compile(r"(?<![^\W_])[^\W_]|(?<=[^\W_])[^\w\s]")
#: Korean vowels and finals that are typed as two letters, each followed by these two.
_TWO = """
    \u116a\u1169\u1161 \u116b\u1169\u1162 \u116c\u1169\u1175 \u116f\u116e\u1165 \u1170\u116e\u1166 \u1171\u116e\u1175
    \u1174\u1173\u1175 \u11aa\u11a8\u11ba \u11ac\u11ab\u11bd \u11ad\u11ab\u11c2 \u11b0\u11af\u11a8 \u11b1\u11af\u11b7
    \u11b2\u11af\u11b8 \u11b3\u11af\u11ba \u11b4\u11af\u11c0 \u11b5\u11af\u11c1 \u11b6\u11af\u11c2 \u11b9\u11b8\u11ba
"""
#: Korean final consonants, and the same as the first of a syllable, as which they are compared.
_FINALS = str.maketrans(
    "\u11a8\u11a9\u11ab\u11ae\u11af\u11b7\u11b8\u11ba\u11bb\u11bc\u11bd\u11be\u11bf\u11c0\u11c1\u11c2",
    "\u1100\u1101\u1102\u1103\u1105\u1106\u1107\u1109\u110a\u110b\u110c\u110e\u110f\u1110\u1111\u1112",
)
_PARTS = _FINALS | {ord(each[0]): each[1:].translate(_FINALS) for each in _TWO.split()}


@dataclass
class Spelling:
    """The form in which texts are compared."""

    #: Its words, with blanks between.
    key: str
    #: The positions, in characters, where the key and each word in it begin.
    starts: Sequence[int]
    #: Blanks of the key that may be left out, because the text has no white space there.
    joints: Sequence[int]

    def variants(self) -> list[tuple[int, str]]:
        """Return the number of each start after which blanks may be left out, and the key from there without them."""
        if not self.joints:
            return []
        left_out = frozenset(self.joints)
        joined = "".join(each for at, each in enumerate(self.key) if at not in left_out)
        return [
            (number, joined[start - bisect_left(self.joints, start) :])
            for number, start in enumerate(self.starts)
            if self.joints[-1] > start
        ]

    @cached_property
    def beginnings(self) -> list[list[str]]:
        """For each start, the texts whose prefixes find the name."""
        found = [[self.key[start:]] for start in self.starts]
        for number, variant in self.variants():
            found[number].append(variant)
        return found

    @cached_property
    def readings(self) -> list[list[str]]:
        """The typed text and other readings of it, each as prefixes of different words of a name."""
        return [[self.key], *ways(self.key, self.joints)]


def spell(text: str) -> Spelling:
    """Return the spelling of *text*; its key is empty if the text has no visible character."""
    if _SIMPLE.fullmatch(text):
        key = " ".join(text.lower().split())
        return Spelling(key, [0, *(found.end() for found in _BLANK.finditer(key))][:MAX_WORDS], ())
    if is_blank(text):
        return Spelling("", [], ())
    folded = normalize("NFD", normalize("NFKC", text.translate(_BEFORE)).casefold())
    # The Armenian ligature of two letters is the older spelling of what is also written as two others.
    signs = folded.replace("\u0565\u0582", "\u0565\u057e").translate(_signs)
    symbols = _MARKED.findall(signs)
    signs = normalize("NFKC", _OUTER.sub("", _MARKED.sub(_JOINED, signs)).strip(_JOINED + " "))
    signs = _COMPOSED.sub(lambda found: normalize("NFD", found[0]), signs).translate(_PARTS)
    words = [_word(word) for word in _BETWEEN.split(signs) if word]
    if not words and not symbols:  # there is only punctuation, so it is compared
        plain = normalize("NFKC", _OPTIONAL.sub("", folded)).split()
        return _spelling(
            [(word, []) for word in plain if not all(category(each) in ("Cc", "Cf") for each in word)], []
        )
    joined = set()
    for number, gap in enumerate(_BETWEEN.findall(signs), 1):
        are_initials = gap[0] == _JOINED and len(words[number - 1][0]) == len(words[number][0]) == 1
        are_wide = _WIDE.match(words[number - 1][0][-1:]) and _WIDE.match(words[number][0])
        if " " not in gap or are_initials or are_wide:
            joined.add(number)
    return _spelling([*words, *((each, [0]) for each in symbols)], joined)


def _word(word: str) -> tuple[str, list[int]]:
    """Return *word* without its apostrophes, and the positions where they were."""
    parts = word.split(_APART)
    return "".join(parts), list(accumulate(map(len, parts[:-1])))


def _spelling(words: Sequence[tuple[str, list[int]]], joined: Collection[int]) -> Spelling:
    """
    Return the spelling of *words*, each of which has a list of places inside it where a search may start as well. The
    words with numbers in *joined* need no blank before them.
    """
    key = " ".join(word for word, _starts in words)
    most = MAX_KEY if key.isascii() else MAX_KEY * (5 if re.search("[\u1100-\u11ff]", key) else 1)
    starts, joints, at = list[int](), list[int](), 0
    for number, (word, further) in enumerate(words):
        if number in joined:
            joints.append(at - 1)
        if len(starts) < MAX_WORDS:
            begins = {start.start() for start in _START.finditer(word)}
            if not word.isascii():  # marks are neither letters nor between words
                begins = {
                    each for each in begins if "M" not in category(word[each]) + category(word[each - 1])
                }
            starts += [at + start for start in sorted({0, *further} | begins)]
        at += len(word) + 1
    return Spelling(key[:most], [each for each in starts[:MAX_WORDS] if each < most], joints)


def fold(text: str) -> str:
    """Return the search key of *text*."""
    return spell(text).key


def ways(key: str, joints: Sequence[int] = ()) -> list[list[str]]:
    """
    Return other readings of the typed text, each as prefixes of different words of a name: the whole text as one
    word, and its words in any order, with hyphenated words as one or as several.
    """
    if " " not in key:
        return []
    together = "".join("" if at in joints else each for at, each in enumerate(key))
    found = [[key.replace(" ", "")], _tokens(together), _tokens(key)]
    known: list[list[str]] = []
    for way in found:
        if way and way != [key] and way not in known and len(way) <= MAX_WORDS:
            known.append(way)
    return known


def _tokens(key: str) -> list[str]:
    return sorted(key.split(), key=lambda each: -len(each.encode()))


def is_found(name: Spelling, typed: Spelling) -> bool:
    """Return whether *typed* finds *name*."""
    return any(_fits(name.beginnings, way) for way in typed.readings)


def finds(typed: str, label: str) -> bool:
    """Return whether *typed* finds *label*, as it would if *label* were in a book."""
    return is_found(spell(label), spell(typed))


def _fits(beginnings: Sequence[Sequence[str]], way: Sequence[str]) -> bool:
    """Return whether each prefix in *way* begins a different word. The longest prefixes come first."""
    taken: set[int] = set()
    for wanted in way:
        for number, texts in enumerate(beginnings):
            if number not in taken and any(text.startswith(wanted) for text in texts):
                taken.add(number)
                break
        else:
            return False
    return True


def check_prefix(prefix: object) -> Spelling:
    """Return the spelling of *prefix*. Raises InvalidValue."""
    if not (typed := spell(_check_text("prefix", prefix, MAX_PREFIX, least=0))).key:
        raise InvalidValue("The prefix is empty, or nothing of it is visible.")
    return typed


def check_label(label: object) -> tuple[str, Spelling]:
    """Return *label* and its spelling. Raises InvalidValue."""
    text = _check_text("label of an entry", label, MAX_LABEL)
    if not (spelling := spell(text)).key:
        raise InvalidValue("The label of an entry is empty, or nothing of it is visible.")
    return text, spelling


def check_id(entry: object) -> str:
    """Return *entry* as the text of an id: a number becomes its digits. Raises InvalidValue."""
    if isinstance(entry, int) and not isinstance(entry, bool):
        if abs(entry) >= 10 ** (MAX_ID - 1):
            raise InvalidValue(
                f"The id of an entry is a number of {MAX_ID} digits or more. Use a shorter one."
            )
        return str(entry)
    return _check_text("id of an entry", entry, MAX_ID)


def check_contact(contact: object) -> str:
    """Return *contact* if it can be the id of a contact. Raises InvalidValue."""
    return _check_text("contact of an entry", contact, MAX_NAME)


def _check_text(what: str, text: object, longest: int, *, least: int = 1) -> str:
    """Return *text* if it is so long, and has no character that is forbidden. Raises InvalidValue."""
    if not isinstance(text, str):
        raise InvalidValue(f"The {what} is {type(text).__name__}; it must be str.")
    if not least <= len(text) <= longest:
        raise InvalidValue(f"The {what} has {len(text):,} characters; it must have 1 to {longest}.")
    if wrong := _wrong(text):
        raise InvalidValue(f"The {what} holds {wrong}.")
    return text


def _wrong(text: str) -> str | None:
    """Describe the first control character or half of a character in *text*; None if there is none."""
    if text.isprintable():
        return None
    names = {"Cc": "a control character", "Cs": "half of a character"}
    found = ((at, name) for at, character in enumerate(text) if (name := names.get(category(character))))
    return next((f"{name}, at position {at}" for at, name in found), None)
