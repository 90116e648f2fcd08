/*
 * What this browser knows about the chats. Messages are stored by their seq, so one that arrives twice, with a sync
 * and with a page of the history, is stored once. The event "change" has the ids of the changed chats in its detail.
 */

const KEPT = 200; // messages of a chat that stay in memory when it is closed

export class Store extends EventTarget {
    me;
    chats = new Map();
    unavailable = []; // ids of chats that the server could not read
    #names = new Map();

    constructor(me) {
        super();
        this.me = me;
    }

    nameOf = (id) => this.#names.get(id) ?? id;

    learn(names = {}) {
        for (const [id, name] of Object.entries(names)) this.#names.set(id, name);
    }

    /** Apply an answer of the sync. A *fresh* answer covers all chats, so chats that are not in it are removed. */
    apply(answer, fresh) {
        this.learn(answer.people);
        const changed = new Set(answer.gone ?? []);
        this.unavailable = answer.unavailable ?? [];
        if (fresh) for (const id of this.chats.keys()) if (!this.unavailable.includes(id)) changed.add(id);
        const before = new Map(this.chats);
        for (const id of changed) this.chats.delete(id);
        for (const news of answer.chats) {
            this.chats.set(news.id, this.#merged(before.get(news.id), news, fresh));
            changed.add(news.id);
        }
        this.#tell(changed);
    }

    #merged(before, news, fresh) {
        // After a fresh start there may be a gap below, so load the history again.
        const { deleted = new Set(), erased = new Map() } = before ?? {};
        const chat = { log: new Map(), isLoaded: false, hasOlder: true, hasNewer: false, read_seq: 0, missed: 0, ...(fresh ? {} : before), deleted, erased };
        const { log } = chat;
        // The event of a deletion may have been missed, so keep only what the server still has.
        if (!fresh && news.missed) for (const seq of log.keys()) if (seq < news.oldest) log.delete(seq);
        const read = before ? Math.max(before.read_seq, news.read_seq) : news.read_seq;
        Object.assign(chat, news, { log, read_seq: read, missed: chat.missed + (fresh ? 0 : news.missed ?? 0) });
        this.#add(chat, news.messages);
        for (const message of news.changed ?? []) this.#renew(chat, message);
        if (read > news.read_seq && read >= news.last_seq) chat.unread = chat.mentions = 0; // reported, but not in the answer yet
        return chat;
    }

    #add(chat, messages = []) {
        for (const message of messages) {
            if (!chat.hasNewer || chat.log.has(message.seq)) chat.log.set(message.seq, message);
            if (!chat.last_message || message.seq > chat.last_message.seq) chat.last_message = message;
            chat.last_seq = Math.max(chat.last_seq, message.seq);
        }
        for (const { seq, event } of messages) {
            if (event?.kind === "deleted") chat.deleted.add(Number(event.detail));
            if (event?.kind === "erased") chat.erased.set(event.user, Math.max(seq, chat.erased.get(event.user) ?? 0));
        }
        // Remembered, since a page of the history may have been under way when the event came.
        for (const [seq, { sender }] of chat.log) {
            if (chat.deleted.has(seq) || seq < (chat.erased.get(sender) ?? 0)) chat.log.delete(seq);
        }
    }

    /** A message has changed: replace it, if it is here. */
    #renew(chat, message) {
        if (chat.log.has(message.seq)) chat.log.set(message.seq, message);
        if (chat.last_message?.seq === message.seq) chat.last_message = message;
    }

    /** Note what the user has changed of a message, until it comes with the next news. */
    change(id, seq, changes) {
        const message = this.message(id, seq);
        if (message) this.#renew(this.chats.get(id), { ...message, ...changes });
        this.#tell([id]);
    }

    /**
     * Apply a page of the history: "newest"; "older", before the first message in memory; "newer", after the last one;
     * or "around" a message, which replaces what is in memory. After that one, new messages stay out of memory until
     * the pages after it are there as well.
     */
    addPage(id, page, kind) {
        this.learn(page.people);
        const chat = this.chats.get(id);
        if (!chat) return;
        if (kind === "around") chat.log.clear();
        const { hasNewer } = chat;
        chat.hasNewer = false;
        this.#add(chat, page.messages);
        chat.isLoaded = true;
        if (kind !== "newer") chat.hasOlder = page.has_more;
        if (kind === "older") chat.hasNewer = hasNewer;
        // A message may have come after the server had read this page.
        if (kind === "newer") chat.hasNewer = page.has_more || (page.messages.length > 0 && !chat.log.has(chat.last_seq));
        if (kind === "around") chat.hasNewer = page.has_newer || !chat.log.has(chat.last_seq);
        this.#tell([id]);
    }

    /** Forget the messages of a chat, which will be loaded again. */
    forget(id) {
        const chat = this.chats.get(id);
        chat?.log.clear();
        if (chat) Object.assign(chat, { isLoaded: false, hasOlder: true, hasNewer: false });
    }

    /** The message with this seq; null if it is not in memory. */
    message(id, seq) {
        return this.chats.get(id)?.log.get(seq) ?? null;
    }

    isDeleted(id, seq) {
        return this.chats.get(id)?.deleted.has(seq) ?? false;
    }

    /** Add a message that this browser has sent and the server has accepted. */
    addSent(id, message) {
        const chat = this.chats.get(id);
        if (!chat || chat.log.has(message.seq)) return;
        this.#add(chat, [message]);
        this.#tell([id]);
    }

    remove(id, seq) {
        const chat = this.chats.get(id);
        chat?.deleted.add(seq);
        chat?.log.delete(seq);
        this.#tell([id]);
    }

    /** The user has read up to *seq*: note it here at once, and on the server soon. */
    read(id, seq) {
        const chat = this.chats.get(id);
        if (!chat || seq <= chat.read_seq) return false;
        chat.read_seq = seq;
        if (seq >= chat.last_seq) chat.unread = chat.mentions = 0;
        this.#tell([id]);
        return true;
    }

    /** Forget messages far above; they can be loaded again. */
    trim(id) {
        const chat = this.chats.get(id);
        if (chat?.hasNewer) this.forget(id);
        if (!chat || chat.log.size <= KEPT) return;
        const seqs = [...chat.log.keys()].sort((a, b) => a - b);
        for (const seq of seqs.slice(0, -KEPT)) chat.log.delete(seq);
        chat.hasOlder = true;
    }

    messages(id) {
        return [...(this.chats.get(id)?.log.values() ?? [])].sort((a, b) => a.seq - b.seq);
    }

    /** All chats, the one with the newest message first. */
    sorted() {
        const at = (chat) => Date.parse(chat.last_message?.sent_at ?? 0) || 0;
        return [...this.chats.values()].sort((a, b) => at(b) - at(a) || (a.id < b.id ? -1 : 1));
    }

    get unread() {
        return [...this.chats.values()].reduce((sum, chat) => sum + chat.unread, 0);
    }

    get mentions() {
        return [...this.chats.values()].reduce((sum, chat) => sum + chat.mentions, 0);
    }

    #tell(ids) {
        this.dispatchEvent(new CustomEvent("change", { detail: new Set(ids) }));
    }
}
