/*
 * Messages that are not yet on the server. Each is an entry of localStorage, so they outlive the page, and several
 * tabs do not overwrite each other. Each message has a client id from the start, and the server stores one message per
 * id, however often and by whichever tab it is sent.
 *
 * Messages of a chat are sent in the order of writing: one that cannot be sent now holds back those after it. A
 * message that the server refuses finally stays, marked as failed, until its writer tries again or withdraws it.
 */

import { Problem } from "./api.js";

const LEAST = 1_000; // ms between attempts; doubled after each attempt
const MOST = 30_000;

export class Outbox extends EventTarget {
    #prefix;
    #api;
    #store;
    #memory = new Map(); // messages that cannot be stored, because storage is full or forbidden
    #busy = new Set();
    #delay = LEAST;
    #last = 0;

    constructor(api, store) {
        super();
        this.#api = api;
        this.#store = store;
        this.#prefix = `components.chat.outbox.${store.me}.`;
        window.addEventListener("storage", ({ key }) => key?.startsWith(this.#prefix) && this.#tell());
    }

    add(chat, text, mentions, replyTo = null) {
        this.#last = Math.max(Date.now(), this.#last + 1); // keeps the order of two messages in one millisecond
        const item = { chat, clientId: crypto.randomUUID?.() ?? randomId(), text, mentions, replyTo, at: this.#last, failed: "" };
        this.#write(item);
        this.#tell();
        this.flush();
        return item;
    }

    /** The messages of a chat, or all, in the order of writing. */
    items(chat) {
        const items = this.#read().filter((item) => chat === undefined || item.chat === chat);
        return items.sort((a, b) => a.at - b.at || (a.clientId < b.clientId ? -1 : 1));
    }

    retry(clientId) {
        const item = this.#find(clientId);
        if (!item) return;
        this.#write({ ...item, failed: "" });
        this.#tell();
        this.flush();
    }

    remove(clientId) {
        this.#memory.delete(clientId);
        attempt(() => localStorage.removeItem(this.#prefix + clientId));
        this.#tell();
    }

    /** Remove messages that the server has, since the answers to sending them may have been lost. */
    settle(messages) {
        const here = new Set(this.#read().map((item) => item.clientId));
        for (const { sender, client_id: id } of messages) if (sender === this.#store.me && here.has(id)) this.remove(id);
    }

    /** Send what can be sent now. */
    flush() {
        this.#delay = LEAST;
        for (const chat of new Set(this.items().map((item) => item.chat))) this.#flushChat(chat);
    }

    async #flushChat(chat) {
        if (this.#busy.has(chat)) return;
        this.#busy.add(chat);
        try {
            await alone(this.#prefix + chat, () => this.#sendAll(chat));
        } finally {
            this.#busy.delete(chat);
        }
    }

    async #sendAll(chat) {
        for (let item; (item = this.items(chat).find((one) => !one.failed));) {
            try {
                const sent = await this.#api.send(chat, item);
                this.#store.addSent(chat, message(item, sent, this.#store.me));
                this.remove(item.clientId);
            } catch (error) {
                if (!this.#failed(item, error)) return;
            }
        }
    }

    /** Handle a failure to send *item*; return whether to go on with the next one. */
    #failed(item, error) {
        if (error.status === 404 && !this.#store.chats.has(item.chat)) {
            this.remove(item.clientId); // the user has left this chat, so there is nowhere to show the message
            return true;
        }
        if (error instanceof Problem && !error.isTemporary && !error.isSignedOut) {
            this.#write({ ...item, failed: error.message });
            this.#tell();
            return true;
        }
        if (error instanceof Problem && error.isSignedOut) return false;
        const pause = Math.max((error.retryAfter ?? 0) * 1000, this.#delay);
        this.#delay = Math.min(this.#delay * 2, MOST);
        setTimeout(() => this.#flushChat(item.chat), pause);
        return false;
    }

    #find(clientId) {
        return this.#read().find((item) => item.clientId === clientId);
    }

    #write(item) {
        const isStored = attempt(() => localStorage.setItem(this.#prefix + item.clientId, JSON.stringify(item)) ?? true);
        if (isStored) this.#memory.delete(item.clientId);
        else this.#memory.set(item.clientId, item);
    }

    #read() {
        const items = attempt(() => Object.keys(localStorage)
            .filter((key) => key.startsWith(this.#prefix))
            .map((key) => attempt(() => JSON.parse(localStorage.getItem(key)))));
        return [...(items ?? []).filter(Boolean), ...this.#memory.values()];
    }

    #tell() {
        this.dispatchEvent(new Event("change"));
    }
}

/** Run *work* in one tab at a time, so that messages are sent in the order of writing. */
function alone(name, work) {
    return navigator.locks ? navigator.locks.request(name, work) : work();
}

function message(item, sent, me) {
    const { seq, sent_at } = sent;
    return { seq, sent_at, sender: me, text: item.text, data: null, mentions: item.mentions, client_id: item.clientId, event: null, reply_to: item.replyTo ?? null, reactions: {} };
}

/** Return a random id. crypto.randomUUID exists only over https and on localhost. */
function randomId() {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The result of *action*, or null if storage is forbidden, full or damaged. */
function attempt(action) {
    try {
        return action();
    } catch {
        return null;
    }
}
