/*
 * Where names come from: a book, asked over HTTP, and one's recent contacts, which come once and are looked through here.
 *
 * A book remembers its answers for a while. An answer that was all there is for "jo" has those for "joh" in it, so going
 * on typing asks nobody.
 */

import { isBeginning, narrowed } from "./matching.js";

const REMEMBERED = 60_000; // ms: who has left the book is offered no longer than that
const MOST = 100; // answers
const LONGEST = 200; // characters: no name begins with more

/** The server has refused: *retryAfter* is in how many seconds it might not, 0 if that is not known. */
export class Refused extends Error {
    constructor(status, retryAfter) {
        super(`Status ${status}`);
        this.status = status;
        this.retryAfter = retryAfter;
    }
}

async function asked(address, signal) {
    const answer = await fetch(address, { headers: { Accept: "application/json" }, credentials: "same-origin", signal });
    if (!answer.ok) throw new Refused(answer.status, Number(answer.headers.get("Retry-After")) || 0);
    return answer.json();
}

export class Book {
    #address;
    #limit;
    #answers = new Map(); // prefix -> { entries, isComplete, at }

    constructor(address, limit) {
        this.#address = address;
        this.#limit = limit;
    }

    /** What is known of *prefix* without asking; null if that is not all that an answer would say. */
    known(prefix) {
        const oldest = performance.now() - REMEMBERED;
        const exact = this.#answers.get(prefix);
        if (exact?.at > oldest) return exact.entries;
        for (let length = prefix.length - 1; length > 0; length -= 1) {
            const begun = prefix.slice(0, length);
            const shorter = this.#answers.get(begun);
            if (shorter?.isComplete && shorter.at > oldest && isBeginning(begun)) return narrowed(shorter.entries, prefix);
        }
        return null;
    }

    async complete(prefix, signal) {
        if (prefix.length > LONGEST) return [];
        const query = new URLSearchParams({ q: prefix, limit: this.#limit });
        const { entries, is_complete: isComplete } = await asked(`${this.#address}?${query}`, signal);
        this.#answers.delete(prefix); // so that it becomes the youngest
        this.#answers.set(prefix, { entries, isComplete, at: performance.now() });
        if (this.#answers.size > MOST) this.#answers.delete(this.#answers.keys().next().value);
        return entries;
    }

    /** Tell the book what was chosen, by which it ranks. The choice holds whether it hears that or not. */
    select(id, token) {
        const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
        const options = { method: "POST", headers, body: JSON.stringify({ id }), credentials: "same-origin", keepalive: true };
        fetch(`${this.#address}/select`, options).catch(() => undefined);
    }
}

const lists = new Map(); // address -> the promise of contacts: fields of one page ask once

export class Contacts {
    isReady = false; // there is an answer, or was none
    #address;
    #entries = [];

    constructor(address) {
        this.#address = address;
    }

    /** Fetch them, if no field of this page has. Without an answer there are none; the next field tries again. */
    async load() {
        if (!lists.has(this.#address)) lists.set(this.#address, asked(this.#address));
        try {
            this.#entries = (await lists.get(this.#address)).contacts.map((contact) => ({ ...contact, isRecent: true }));
        } catch {
            lists.delete(this.#address);
        }
        this.isReady = true;
    }

    /** Those whom *prefix* finds, all for an empty one; who was written to last comes first. */
    complete(prefix) {
        return prefix ? narrowed(this.#entries, prefix) : this.#entries;
    }
}
