/*
 * The people who can be mentioned in a chat. The members of a small chat are loaded once and searched here; for a
 * larger one the server is asked for matching members when typing pauses. If it does not answer, known members are
 * offered: members in earlier answers, and members with a reading position.
 */

import { find } from "../autocomplete/matching.js";

const FEW = 200; // the most members that are loaded at once
const OFFERED = 8; // the most names that are offered
const PAUSE = 150; // ms: longer than the pause between keys in fluent typing

export class Roster {
    #api;
    #store;
    #chat;
    #known = new Set(); // ids that the server has named
    #answers = new Map(); // beginning of a name -> the promise of the matching ids
    #latest = "";

    constructor(api, store, chat) {
        this.#api = api;
        this.#store = store;
        this.#chat = chat;
    }

    /** A promise of members that match *begun*, the best first: [{ id, name }]. */
    async find(begun) {
        const isFew = (this.#store.chats.get(this.#chat)?.member_count ?? 0) <= FEW;
        const ids = await (isFew ? this.#ask("", {}) : this.#askSoon(begun));
        const fits = this.#named(ids ?? this.#all()).map((who) => ({ ...who, at: begun ? find(who.name, begun)?.start : 0 }));
        const best = fits.filter(({ at }) => at !== undefined).sort((a, b) => Math.sign(a.at) - Math.sign(b.at) || a.name.localeCompare(b.name));
        return best.slice(0, OFFERED);
    }

    /** All members who are known to be mentionable. */
    known() {
        return this.#named(this.#all());
    }

    /** Forget answers, because members have changed. */
    forget() {
        this.#answers.clear();
    }

    #all() {
        return new Set([...this.#known, ...Object.keys(this.#store.chats.get(this.#chat)?.reads ?? {})]);
    }

    #named(ids) {
        const { me, nameOf } = this.#store;
        return [...ids].filter((id) => id !== me).map((id) => ({ id, name: nameOf(id) }));
    }

    async #askSoon(begun) {
        this.#latest = begun;
        if (!this.#answers.has(begun)) await new Promise((resolve) => setTimeout(resolve, PAUSE));
        if (begun !== this.#latest) return null; // nobody waits for it any more
        return this.#ask(begun, { limit: OFFERED + 1, ...(begun && { q: begun }) }); // one of them may be the user
    }

    #ask(begun, query) {
        if (!this.#answers.has(begun)) this.#answers.set(begun, this.#fetch(query).catch(() => this.#withoutAnswer(begun)));
        return this.#answers.get(begun);
    }

    async #fetch(query) {
        const { members } = await this.#api.members(this.#chat, query);
        this.#store.learn(Object.fromEntries(members.map(({ id, name }) => [id, name])));
        const ids = members.map(({ id }) => id);
        for (const id of ids) this.#known.add(id);
        return ids;
    }

    /** Handle a missing answer: the next key asks again, and until then known members are offered. */
    #withoutAnswer(begun) {
        this.#answers.delete(begun);
        return null;
    }
}
