/*
 * Which names a prefix finds, and where in them: capitals, accents and the width of letters do not count, and each word
 * inside of a name is found as its first one is. The server decides what is offered; this narrows what it has told.
 */

const MARKS = /\p{Mn}/gu;
const LETTER = /[\p{L}\p{N}\p{M}]/u;
const BLANK = /\s/u;

/** One character as it is compared: "É", "é" and "e" are the same; "ß" is two. */
function folded(character) {
    return character.normalize("NFKC").toUpperCase().toLowerCase().normalize("NFD").replace(MARKS, "");
}

/** The compared characters of *text* in order, each with the place that it comes from: [{ sign, start, end }]. */
function spelled(text) {
    const signs = [];
    let start = 0;
    for (const character of text) {
        const end = start + character.length;
        const isBlank = BLANK.test(character);
        if (isBlank && signs.length && signs.at(-1).sign !== " ") signs.push({ sign: " ", start, end });
        if (!isBlank) for (const sign of folded(character)) signs.push({ sign, start, end });
        start = end;
    }
    return signs;
}

/** Where *label* begins with *prefix*, or else its first word that does: { start, end }; null if none does. */
export function find(label, prefix) {
    const wanted = spelled(prefix);
    if (!wanted.length) return null;
    const signs = spelled(label);
    for (let at = 0; at + wanted.length <= signs.length; at += 1) {
        const isStart = at === 0 || !LETTER.test(signs[at - 1].sign);
        if (isStart && wanted.every(({ sign }, index) => signs[at + index].sign === sign)) {
            return { start: signs[at].start, end: signs[at + wanted.length - 1].end };
        }
    }
    return null;
}

/** Those of *entries* that *prefix* finds, in their order. */
export const narrowed = (entries, prefix) => entries.filter(({ label }) => find(label, prefix));
