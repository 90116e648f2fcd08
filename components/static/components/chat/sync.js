/*
 * One endless long-poll for all chats: ask with the cursor of the last answer, wait for news, apply them, ask again.
 * After a failure it pauses, twice as long each time; it goes on at once when the browser says that the network is
 * back. The event "state" is one of connecting, online, offline, unavailable (the server answers, Redis does not),
 * signed-out.
 */

import { Problem } from "./api.js";

const WAIT = 25; // s: how long the server may let a request wait
const LEAST = 500; // ms: the first pause
const MOST = 20_000;

export class Sync extends EventTarget {
    state = "connecting";
    #api;
    #store;
    #cursor = "";
    #failures = 0;
    #control = new AbortController();
    #wake = () => {};

    constructor(api, store) {
        super();
        this.#api = api;
        this.#store = store;
        window.addEventListener("offline", () => {
            this.#become("offline");
            this.#control.abort();
        });
        window.addEventListener("online", () => {
            this.#failures = 0;
            this.#wake();
        });
        document.addEventListener("visibilitychange", () => document.hidden || this.#wake());
    }

    async run() {
        while (this.state !== "signed-out") {
            const pause = await this.#once().catch((error) => this.#failed(error));
            if (pause) await this.#sleep(pause);
        }
    }

    /** Ask once; return the milliseconds to pause. */
    async #once() {
        const fresh = !this.#cursor;
        this.#control = new AbortController();
        // The first answer after an outage comes at once, to show that the connection works again.
        const wait = this.state === "online" ? WAIT : 0;
        const answer = await this.#api.sync(this.#cursor, wait, this.#control.signal);
        // A long list of chats comes in parts. Collect all of them before they replace the present list.
        for (let part = answer; fresh && part.has_more_chats;) {
            part = await this.#api.sync(part.cursor, 0, this.#control.signal);
            Object.assign(answer, { user: part.user, cursor: part.cursor, people: { ...answer.people, ...part.people } });
            answer.chats.push(...part.chats);
        }
        if (answer.user !== this.#store.me) return location.reload(); // another user has logged in meanwhile
        this.#cursor = answer.cursor;
        this.#failures = 0;
        const news = answer.chats.flatMap((chat) => chat.messages ?? []);
        this.#store.apply(answer, fresh);
        this.dispatchEvent(new CustomEvent("news", { detail: { messages: news, fresh } }));
        this.#become("online");
        return wait ? answer.retryAfter * 1000 : 0;
    }

    #failed(error) {
        if (!(error instanceof Error)) throw error;
        if (error instanceof Problem && error.isSignedOut) this.#become("signed-out");
        else if (error instanceof Problem && error.status === 400 && this.#cursor) this.#cursor = ""; // the cursor is from another release
        else if (error instanceof Problem) this.#become("unavailable");
        else if (error.name === "Unreachable" || navigator.onLine === false) this.#unreachable();
        else throw error;
        this.#failures += 1;
        const pause = Math.min(LEAST * 2 ** (this.#failures - 1), MOST) * (0.75 + Math.random() / 2);
        return Math.max(pause, (error.retryAfter ?? 0) * 1000);
    }

    /** Report a failure, but not the first one, since a server that restarts is back in a moment. */
    #unreachable() {
        if (navigator.onLine === false || this.#failures > 0 || this.state !== "online") this.#become("offline");
    }

    #sleep(pause) {
        return new Promise((resolve) => {
            const timer = setTimeout(resolve, pause);
            this.#wake = () => {
                clearTimeout(timer);
                resolve();
            };
        });
    }

    #become(state) {
        if (state === this.state) return;
        this.state = state;
        this.dispatchEvent(new Event("state"));
    }
}
