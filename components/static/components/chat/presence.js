/*
 * Who else has the open chat open, and who is typing: a long-poll of its own, so that neither disturbs that for the
 * messages. It runs while the page is visible, and is the sign by which others see that this visitor is here.
 */

const WAIT = 25; // s: how long the server may let a request wait
const REST = 300; // ms between two requests: people who begin to type together come with one answer
const LEAST = 2_000; // ms: the first pause after a failure
const MOST = 60_000;
const TYPED = 3_000; // ms between two notes that the visitor is typing: half of what one note lasts

export class Presence {
    here = []; // ids of some who have the chat open, and how many they are
    count = 0;
    typing = [];
    #api;
    #store;
    #chat;
    #onchange;
    #after = 0; // the last seq when the server said who was typing
    #typedAt = -Infinity;
    #isClosed = false;
    #control = new AbortController();
    #wake = () => {};

    constructor(api, store, chat, onchange) {
        this.#api = api;
        this.#store = store;
        this.#chat = chat;
        this.#onchange = onchange;
        document.addEventListener("visibilitychange", this.#turned);
        this.#run();
    }

    /** The visitor has written something: say so, but not with each key. */
    typed() {
        if (performance.now() - this.#typedAt < TYPED) return;
        this.#typedAt = performance.now();
        this.#api.typing(this.#chat).catch(() => {}); // others would only not see it
    }

    /** The visitor's message ends their typing, so the next key is news. */
    sent() {
        this.#typedAt = -Infinity;
    }

    /** Messages have come: whoever sent one has stopped typing. */
    heard() {
        if (!this.typing.length) return;
        const senders = new Set(this.#store.messages(this.#chat).filter(({ seq }) => seq > this.#after).map(({ sender }) => sender));
        const left = this.typing.filter((id) => !senders.has(id));
        if (left.length === this.typing.length) return;
        this.typing = left;
        this.#control.abort(); // ask again, to hear of it when they go on typing
        this.#onchange();
    }

    close() {
        this.#isClosed = true;
        document.removeEventListener("visibilitychange", this.#turned);
        this.#control.abort();
        this.#wake();
    }

    #turned = () => {
        if (document.visibilityState === "visible") this.#wake();
        else this.#control.abort();
    };

    async #run() {
        let isKnown = false; // at first and after a failure: then the answer comes at once
        let pause = LEAST;
        while (!this.#isClosed) {
            if (document.visibilityState !== "visible") {
                await new Promise((resolve) => { this.#wake = resolve; });
                isKnown = false;
                continue;
            }
            this.#control = new AbortController();
            try {
                const answer = await this.#api.presence(this.#chat, isKnown ? this.typing : undefined, WAIT, this.#control.signal);
                if (!this.#control.signal.aborted) this.#apply(answer);
                pause = LEAST;
                isKnown = true;
                await this.#sleep(answer.retryAfter * 1000 || REST);
            } catch (error) {
                isKnown = this.#control.signal.aborted;
                if (!isKnown) {
                    this.#apply({ here: [], count: 0, typing: [] }); // nothing is known without the server
                    if (error.name !== "Unreachable" && !error.isTemporary) return;
                    await this.#sleep(Math.max(pause, (error.retryAfter ?? 0) * 1000));
                    pause = Math.min(2 * pause, MOST);
                }
            }
        }
    }

    #apply({ here, count, typing, people }) {
        if (this.#isClosed) return;
        this.#store.learn(people);
        Object.assign(this, { here, count, typing });
        this.#after = this.#store.chats.get(this.#chat)?.last_seq ?? 0;
        this.#onchange();
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
}
