/*
 * Find the names that a text matches, and the matching places. Case, accents, the width of letters, apostrophes and
 * hyphens are ignored; every word of a name can be found by its beginning; and words may come in any order. The server
 * decides what is offered, with the rules of services/autocomplete/folding.py; this script narrows its answers.
 */

/** A letter and its marks, including those of narrow kana. */
const CLUSTER = /\P{M}[\p{M}\uff9e\uff9f]*|\p{M}+/gu;
/**
 * Optional marks and invisible characters; the vowel signs of Indic scripts and the voicing of kana are kept.
 */
const OPTIONAL = new RegExp(
    "[\\u0300-\\u036f\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7\\u0610-\\u061a\\u061c\\u0640\\u064b-\\u065f\\u0670" +
    "\\u115f\\u1160\\u180b-\\u180f\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f\\u00ad\\u200b-\\u200f" +
    "\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufe00-\\ufe0f\\ufeff\\u{e0000}-\\u{e0fff}]", "u",
);
/** Letters that modify others, such as the half rings of transcribed Arabic; and the colours of hands. */
const MODIFYING = /[\u02b0-\u02ba\u02bd-\u02ff\u0559\u07f5\ua717-\ua721\ua788\ua78a\u{1f3fb}-\u{1f3ff}]/u;
/** Letters that have no decomposition, each with what people type if their keyboard lacks it. */
const PLAIN = new Map((
    "øo ðd đd ɖd ɗd łl ɫl ɬl ŧt ƭt þth ħh ɦh ŋn ɲn ɳn ıi ɨi ɩi ƙk ĸk ɓb ƀb ƈc ȼc ɠg ǥg ɣg ʉu ʊu ɔo ɵo ɛe əe ǝe ɇe ƥp " +
    "ʋv ƴy ɏy ƶz ʒz ȥz ʃs ȷj ɉj ɍr ɽr ⱥa ɑa æae œoe ƒf " +
    "ґг ғг ҕг қк ҝк ҡк ӄк ңн ҥн ӈн үу ұу өо әа һх ҳх ҷч ҹч ҙз ҫс ҏр җж " +
    "\u0671\u0627 \u0649\u064a \u06cc\u064a \u06d0\u064a \u06a9\u0643 \u0629\u0647 \u06c1\u0647 \u06be\u0647 \u06d5\u0647"
).split(" ").map(([letter, ...plain]) => [letter, plain.join("")]));
const APOSTROPHE = /['"`\u2018-\u201f\u2032-\u2036\u02bb\u02bc\u055a\u05f3\u05f4\ua78b\ua78c\u07f4\u0241\u0242\u0294\u0295\u02a1\u02a2]/u;
const ACCENT = /[\u00b4\u0384\u1fbd\u1fbf\u1fef\u1ffd\u1ffe]/u; // compatibility decomposition turns them into a blank and an accent
const JOINING = /[=~\u2044\u2212\u2219\u22c5\ua78f\u01c0-\u01c3]|(?![#%&*@])\p{P}/u;
const FRACTION = /[\u00bc-\u00be\u2150-\u215e\u2189]/u; // a blank before it keeps it apart from a whole number
const UNSEEN = /[\p{Cf}\p{Sk}]/u;
const FORMAT = /\p{Cf}/u;
const BLANK = /[\p{Cc}\p{Z}]/u;
const SYMBOL = /\p{So}/u;
const DIGIT = /\p{Nd}/u;
const HIRAGANA = /[\u3041-\u3096\u309d\u309e]/u;
/** Korean syllables, and the scripts of India and South-East Asia, which are compared by the letters that are typed. */
const COMPOSED = /[\uac00-\ud7a3\u0900-\u10ff\u1b00-\u1bff\u{11000}-\u{11fff}]/u;
/** What is written without blanks: Hangul, once it is split, kana and Chinese characters. */
const WIDE = /[\u1100-\u11ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}]/u;
const LETTER = /[\p{L}\p{N}\p{M}]/u;
const FIRST = /[\p{L}\p{N}]/u; // the first character of a word in a name
const MOST = 8; // the most words by which a name can be found
/** The replacements of apostrophes and of characters that join words. */
const APART = "\u0001", JOINED = "\u0002";
PLAIN.set("\u00d7", `x${APART}`); // a multiplication sign
/** Korean final consonants, and the same as the first of a syllable, as which they are compared. */
const BEGUN = "\u1100\u1101\u1102\u1103\u1105\u1106\u1107\u1109\u110a\u110b\u110c\u110e\u110f\u1110\u1111\u1112";
const FINALS = new Map(
    [..."\u11a8\u11a9\u11ab\u11ae\u11af\u11b7\u11b8\u11ba\u11bb\u11bc\u11bd\u11be\u11bf\u11c0\u11c1\u11c2"].map((final, at) => [final, BEGUN[at]]),
);
/** Korean vowels and finals that are typed as two, and these two. */
const PARTS = new Map((
    "\u116a\u1169\u1161 \u116b\u1169\u1162 \u116c\u1169\u1175 \u116f\u116e\u1165 \u1170\u116e\u1166 \u1171\u116e\u1175 " +
    "\u1174\u1173\u1175 \u11aa\u11a8\u11ba \u11ac\u11ab\u11bd \u11ad\u11ab\u11c2 \u11b0\u11af\u11a8 \u11b1\u11af\u11b7 " +
    "\u11b2\u11af\u11b8 \u11b3\u11af\u11ba \u11b4\u11af\u11c0 \u11b5\u11af\u11c1 \u11b6\u11af\u11c2 \u11b9\u11b8\u11ba"
).split(" ").map(([letter, ...parts]) => [letter, parts.join("")]));

/** The ASCII digit of *digit*: the digits of a script are consecutive. */
function value(digit) {
    let zero = digit.codePointAt(0);
    while (DIGIT.test(String.fromCodePoint(zero - 1))) zero -= 1;
    return String((digit.codePointAt(0) - zero) % 10);
}

/** The replacement of a character that is already folded otherwise. */
function sign(character) {
    if (PLAIN.has(character)) return PLAIN.get(character);
    if (APOSTROPHE.test(character)) return APART;
    if (OPTIONAL.test(character) || MODIFYING.test(character) || UNSEEN.test(character)) return "";
    if (BLANK.test(character)) return " ";
    if (JOINING.test(character)) return JOINED;
    if (DIGIT.test(character)) return value(character);
    if (HIRAGANA.test(character)) return String.fromCodePoint(character.codePointAt(0) + 0x60);
    return character;
}

const folded = (letter) =>
    (ACCENT.test(letter) ? "'" : FRACTION.test(letter) ? ` ${letter}` : letter).normalize("NFKC").toUpperCase().toLowerCase().normalize("NFD");

/** The characters that each letter of *text* becomes, with the place that it comes from: [{ sign, start, end }]. */
function signs(text, become) {
    const found = [];
    for (const { 0: letter, index: start } of text.matchAll(CLUSTER)) {
        const composed = [...folded(letter)].map(become).join("").normalize("NFKC");
        for (const each of composed) {
            const parts = COMPOSED.test(each) ? each.normalize("NFD") : each;
            for (const part of [...parts].flatMap((whole) => [...PARTS.get(whole) ?? whole])) {
                const isLigature = part === "\u0582" && found.at(-1)?.sign === "\u0565"; // Armenian, spelled in two ways
                found.push({ sign: isLigature ? "\u057e" : FINALS.get(part) ?? part, start, end: start + letter.length });
            }
        }
    }
    return found;
}

/** The words in the result of signs(): their signs, where apostrophes divide them, and what precedes them. */
function wordsOf(found) {
    const words = [];
    let word = null;
    let gap = "";
    let isParted = false;
    for (const each of found) {
        if (each.sign === APART) {
            isParted = word !== null;
        } else if (each.sign === " " || each.sign === JOINED) {
            [word, gap, isParted] = [null, gap + each.sign, false];
        } else {
            if (!word) words.push(word = { signs: [], parted: [], gap });
            if (isParted && FIRST.test(each.sign)) word.parted.push(word.signs.length);
            word.signs.push(each);
            [gap, isParted] = ["", false];
        }
    }
    return words;
}

/** The form in which *text* is compared: the signs of its words, with blanks between, and where words begin. */
function spelled(text) {
    const symbols = [];
    const found = signs(text, sign).map((each) => {
        if (!SYMBOL.test(each.sign)) return each;
        symbols.push({ signs: [{ ...each, isSymbol: true }], parted: [0], gap: " " });
        return { ...each, sign: JOINED };
    });
    let words = [...wordsOf(found), ...symbols];
    const hasWords = words.length > 0;
    if (!hasWords) { // the text is only punctuation, so that is compared
        const plain = (each) => (BLANK.test(each) ? " " : OPTIONAL.test(each) || FORMAT.test(each) ? "" : each);
        words = wordsOf(signs(text, plain));
    }
    const key = [];
    const starts = new Set();
    words.forEach(({ signs: own, parted, gap }, number) => {
        if (number) {
            const areInitials = gap[0] === JOINED && own.length === 1 && words[number - 1].signs.length === 1;
            const areWide = [words[number - 1].signs.at(-1), own[0]].every((each) => !each.isSymbol && WIDE.test(each.sign));
            const isJoint = gap !== "" && (!gap.includes(" ") || areInitials || areWide);
            const { end } = key.at(-1);
            key.push({ sign: " ", start: end, end: Math.max(end, own[0].start), isJoint });
        }
        own.forEach((each, at) => {
            const before = at ? own[at - 1].sign : "";
            const begins = !at || (LETTER.test(each.sign) ? FIRST.test(each.sign) && !LETTER.test(before) : FIRST.test(before));
            if (begins || parted.includes(at)) starts.add(key.length);
            key.push(each);
        });
    });
    return { key, starts: [...starts].slice(0, MOST), hasWords };
}

const textOf = (key) => key.map((each) => each.sign).join("");
const withoutJoints = (key) => key.filter((each) => !each.isJoint);

/** The words of *text* as they may begin words of names, the longest first. */
function tokens(text) {
    return text.split(" ").sort((a, b) => b.length - a.length);
}

/** The possible meanings of *prefix*, each as beginnings of different words of a name; the literal one comes first. */
function ways(prefix) {
    const { key } = spelled(prefix);
    const text = textOf(key);
    if (!text) return [];
    const found = [[text]];
    if (text.includes(" ")) found.push([text.replaceAll(" ", "")], tokens(textOf(withoutJoints(key))), tokens(text));
    return found.filter((way) => way.length && way.length <= MOST);
}

/** The signs of *key* from *start* on that match *wanted*, with or without optional ones; or null. */
function begun(key, start, wanted) {
    const rest = key.slice(start);
    const length = [...wanted].length;
    for (const own of [rest, withoutJoints(rest)]) {
        if (textOf(own.slice(0, length)) === wanted) return own.slice(0, length);
    }
    return null;
}

/** The signs of the different words that the parts of *way* begin; null if a part begins none. */
function fitting({ key, starts }, way) {
    const taken = new Set();
    const found = [];
    for (const wanted of way) {
        const place = starts.find((start) => !taken.has(start) && begun(key, start, wanted));
        if (place === undefined) return null;
        taken.add(place);
        found.push(begun(key, place, wanted));
    }
    return found;
}

/** The places in the text of each of *runs* of signs, in order; emoji are elsewhere in the text than among the signs. */
function places(runs) {
    const found = [];
    for (const run of runs) {
        let last = null;
        for (const { sign: own, start, end, isSymbol } of run) {
            if (own === " ") continue;
            if (last && !isSymbol && start >= last.start) last.end = end;
            else found.push(last = { start, end });
            if (isSymbol) last = null;
        }
    }
    const merged = [];
    for (const each of found.sort((a, b) => a.start - b.start)) {
        if (merged.length && each.start <= merged.at(-1).end) merged.at(-1).end = Math.max(each.end, merged.at(-1).end);
        else merged.push(each);
    }
    return merged;
}

/** The parts of *label* that *prefix* matches: { start, places: [{ start, end }] }, in order; null without a match. */
export function find(label, prefix) {
    const name = spelled(label);
    for (const way of ways(prefix)) {
        const runs = fitting(name, way);
        if (runs) {
            const found = places(runs);
            return { start: found[0].start, places: found };
        }
    }
    return null;
}

/** Whether longer texts can match only names that *prefix* matches: punctuation alone is compared differently. */
export const isBeginning = (prefix) => spelled(prefix).hasWords;

/** Those of *entries* that *prefix* matches, in their order. */
export const narrowed = (entries, prefix) => entries.filter(({ label }) => find(label, prefix));
