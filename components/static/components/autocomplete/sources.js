/*
 * The sources of names: a book, which is asked over HTTP, the user's recent contacts, which are loaded once and
 * searched here, and the <datalist> of the input.
 *
 * Answers of a book are kept for a while. A complete answer for "jo" contains that for "joh", so typing on sends no
 * request.
 */

import { isBeginning, narrowed } from "./matching.js";

const REMEMBERED = 60_000; // ms: a name that was removed from the book is offered no longer than this
const MOST = 100; // answers
const LONGEST = 200; // characters: the server accepts no longer prefix

/** A refusal by the server; *retryAfter* is the number of seconds after which to try again, 0 if unknown. */
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

    /** The answer for *prefix* that is known without a request; null if it might not be complete. */
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
        const joint = this.#address.includes("?") ? "&" : "?";
        const { entries, is_complete: isComplete } = await asked(`${this.#address}${joint}${query}`, signal);
        this.#answers.delete(prefix); // so that it becomes the newest entry
        this.#answers.set(prefix, { entries, isComplete, at: performance.now() });
        if (this.#answers.size > MOST) this.#answers.delete(this.#answers.keys().next().value);
        return entries;
    }

    /** Report a choice to the book, for its ranking. The choice is valid even if the report fails. */
    select(id, token) {
        const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
        const options = { method: "POST", headers, body: JSON.stringify({ id }), credentials: "same-origin", keepalive: true };
        fetch(`${this.#address}/select`, options).catch(() => undefined);
    }
}

const lists = new Map(); // address -> the promise of contacts, so that the fields of a page send one request

export class Contacts {
    isReady = false; // whether the request has ended, with or without an answer
    #address;
    #entries = [];

    constructor(address) {
        this.#address = address;
    }

    /** Fetch the contacts, unless another field has. Without an answer there are no contacts; the next field tries again. */
    async load() {
        if (!lists.has(this.#address)) lists.set(this.#address, asked(this.#address));
        try {
            this.#entries = (await lists.get(this.#address)).contacts.map((contact) => ({ ...contact, isRecent: true }));
        } catch {
            lists.delete(this.#address);
        }
        this.isReady = true;
    }

    /** The contacts that *prefix* matches, all for an empty one; the latest comes first. */
    complete(prefix) {
        return prefix ? narrowed(this.#entries, prefix) : this.#entries;
    }
}

/** The names in the <datalist> of an input, in their order. The browser does not offer them any more. */
export class Listed {
    isReady = true;
    #list;

    constructor(input) {
        this.#list = input.list;
        input.removeAttribute("list");
    }

    load() {} // they are in the page

    complete(prefix) {
        const entries = [...this.#list.options].map(({ value }) => ({ id: value, label: value }));
        return prefix ? narrowed(entries, prefix) : entries;
    }
}
