/*
 * Which names a prefix finds, and where in them: capitals, accents and the width of letters do not count, and each word
 * inside of a name is found as its first one is. The server decides what is offered; this narrows what it has told.
 */

/** A letter and the marks upon it; a syllable of Hangul, if its parts are written one by one. */
const CLUSTER = /[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?|\P{M}\p{M}*|\p{M}+/gu;
/** What one writes or leaves out as one likes; the vowel signs of Indic scripts and the voicing of kana stay. */
const OPTIONAL = new RegExp(
    "[\\u0300-\\u036f\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7\\u0610-\\u061a\\u0640\\u064b-\\u065f\\u0670" +
    "\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f\\u00ad\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064" +
    "\\u2066-\\u2069\\ufe00-\\ufe0f\\ufeff]", "g",
);
const PLAIN = { "ı": "i", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe" };
const LETTER = /[\p{L}\p{N}\p{M}]/u;
const FIRST = /[\p{L}\p{N}]/u; // of a word inside of a name
const BLANK = /\s/u;

/** One letter as it is compared: "É", "é" and "e" are the same; "ß" is two. */
function folded(letter) {
    const bare = letter.normalize("NFKC").toUpperCase().toLowerCase().normalize("NFD").replace(OPTIONAL, "");
    return [...bare].map((sign) => PLAIN[sign] ?? sign).join("").normalize("NFKC");
}

/** The compared characters of *text* in order, each with the place that it comes from: [{ sign, start, end }]. */
function spelled(text) {
    const signs = [];
    for (const { 0: letter, index: start } of text.matchAll(CLUSTER)) {
        const end = start + letter.length;
        const isBlank = BLANK.test(letter);
        if (isBlank && signs.length && signs.at(-1).sign !== " ") signs.push({ sign: " ", start, end });
        if (!isBlank) for (const sign of folded(letter)) signs.push({ sign, start, end });
    }
    return signs;
}

/** Where *label* begins with *prefix*, or else its first word that does: { start, end }; null if none does. */
export function find(label, prefix) {
    const wanted = spelled(prefix);
    if (!wanted.length) return null;
    const signs = spelled(label);
    for (let at = 0; at + wanted.length <= signs.length; at += 1) {
        const isStart = at === 0 || (FIRST.test(signs[at].sign) && !LETTER.test(signs[at - 1].sign));
        if (isStart && wanted.every(({ sign }, index) => signs[at + index].sign === sign)) {
            return { start: signs[at].start, end: signs[at + wanted.length - 1].end };
        }
    }
    return null;
}

/** Those of *entries* that *prefix* finds, in their order. */
export const narrowed = (entries, prefix) => entries.filter(({ label }) => find(label, prefix));
