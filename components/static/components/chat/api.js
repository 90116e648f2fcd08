/* The HTTP interface, as docs/http-api.md describes it: JSON, and problem details (RFC 9457) as errors. */

const PATIENCE = 15_000; // ms until a request other than a long-poll is given up

/** A refusal by the server. */
export class Problem extends Error {
    constructor(status, problem, retryAfter) {
        super(problem.detail || problem.title || `Status ${status}`);
        this.status = status;
        this.type = problem.type ?? "";
        this.retryAfter = retryAfter;
    }

    /** Whether the same request may succeed later. */
    get isTemporary() {
        return [408, 425, 429].includes(this.status) || this.status >= 500;
    }

    /** Whether the session has ended, or the page is too old. */
    get isSignedOut() {
        return this.status === 401 || (this.status === 403 && this.type.includes("csrf"));
    }
}

/** There was no answer, so it is unknown whether the server carried out the request. */
export class Unreachable extends Error {
    name = "Unreachable";
}

export class Api {
    #base;
    #token;

    constructor(base, token) {
        this.#base = base;
        this.#token = token;
    }

    sync(cursor, timeout, signal) {
        const patience = timeout * 1000 + PATIENCE;
        return this.#send("POST", "sync", { cursor: cursor || undefined, timeout }, { patience, signal });
    }

    messages(chat, query) {
        return this.#send("GET", `${this.#chat(chat)}/messages?${new URLSearchParams(query)}`);
    }

    send(chat, { text, mentions, clientId, replyTo }) {
        return this.#send("POST", `${this.#chat(chat)}/messages`, { text, mentions, reply_to: replyTo?.seq ?? null }, { headers: { "Idempotency-Key": clientId } });
    }

    edit(chat, seq, { text, mentions }) {
        return this.#send("PUT", `${this.#chat(chat)}/messages/${seq}`, { text, mentions });
    }

    react(chat, seq, emoji, isOn) {
        return this.#send("POST", `${this.#chat(chat)}/messages/${seq}/reactions`, { emoji, is_on: isOn });
    }

    deleteMessage(chat, seq) {
        return this.#send("DELETE", `${this.#chat(chat)}/messages/${seq}`);
    }

    read(chat, seq) {
        return this.#send("POST", `${this.#chat(chat)}/read`, { seq });
    }

    /** *typing*: the ids of those who are known to be typing; undefined for an answer at once. */
    presence(chat, typing, timeout, signal) {
        const patience = timeout * 1000 + PATIENCE;
        return this.#send("POST", `${this.#chat(chat)}/presence`, { typing, timeout }, { patience, signal });
    }

    typing(chat) {
        return this.#send("POST", `${this.#chat(chat)}/typing`);
    }

    members(chat, query = {}) {
        return this.#send("GET", `${this.#chat(chat)}/members?${new URLSearchParams(query)}`);
    }

    #chat(id) {
        return `chats/${encodeURIComponent(id)}`;
    }

    async #send(method, path, body, { headers = {}, patience = PATIENCE, signal } = {}) {
        const answer = await this.#fetch(this.#base + path, {
            method,
            headers: {
                Accept: "application/json",
                ...(body && { "Content-Type": "application/json" }),
                ...(method !== "GET" && { "X-CSRFToken": this.#token }),
                ...headers,
            },
            body: body && JSON.stringify(body),
            cache: "no-store",
            credentials: "same-origin",
        }, patience, signal);
        return { ...answer.body, retryAfter: answer.retryAfter };
    }

    /** fetch, with a time limit for the whole answer; *signal* ends it too. */
    async #fetch(url, options, patience, signal) {
        const control = new AbortController();
        const end = () => control.abort();
        const timer = setTimeout(end, patience);
        signal?.addEventListener("abort", end);
        let answer, text;
        try {
            answer = await fetch(url, { ...options, signal: control.signal });
            text = await answer.text();
        } catch (error) {
            throw new Unreachable(error.message);
        } finally {
            clearTimeout(timer);
            signal?.removeEventListener("abort", end);
        }
        const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
        if (!answer.ok) throw new Problem(answer.status, parsed(text), retryAfter);
        return { body: parsed(text), retryAfter };
    }
}

function parsed(text) {
    try {
        return text ? JSON.parse(text) : {};
    } catch {
        return {}; // the answer is a proxy's page; its status is enough
    }
}
