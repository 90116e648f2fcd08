/*
 * One open chat. Its end stays visible while the reader is there, and its history is loaded when the reader scrolls
 * up.
 *
 * The messages at opening are plain content; later ones are added to a live log, which screen readers read out, so
 * that history inserted above is not read. Readers who have scrolled up stay where they are, whatever is added above
 * or below. A message counts as read when it was on the screen of a visible page; the server is told after a short
 * pause.
 */

import { gettext, interpolate, ngettext } from "../i18n.js";
import { h, icon, plain, reconcile, timeOf } from "./dom.js";
import { Composer } from "./composer.js";
import { Presence } from "./presence.js";
import { Roster } from "./roster.js";
import { isEditable, rowsOf } from "./rows.js";
import { hereNow, titleOf, typingNow } from "./sentences.js";

const PAGE = 50; // messages of the history in one request
const NEAR = 400; // px from the top at which older history is requested
const AT_END = 40; // px from the end that still count as the end
const QUOTED = 200; // characters of a quoted message
const REST = 250; // ms until the reading position is reported
const SAID_AGAIN = 30_000; // ms until screen readers are told again that somebody is typing
const AGAIN = 2_000; // ms until history is requested again after a failure

export class Conversation {
    id;
    composer;
    #app;
    #scroller;
    #history = h("div", { class: "chat-history" });
    #live = h("div", { class: "chat-live", role: "log", "aria-label": gettext("New messages") });
    #more;
    #latest;
    #foot = h("div", { class: "chat-foot" });
    #here = h("p", { class: "chat-here" });
    #typing = h("p", { class: "chat-typing", "aria-hidden": "true" });
    #typingSaid = h("p", { class: "chat-hidden", role: "status" });
    #typingSaidAt = -Infinity;
    #presence = null;
    #title = h("h2", { id: "chat-title" });
    #count = h("span", {});
    #members = h("span", { class: "chat-hidden" }, gettext("Members")); // until their number is known
    #liveAfter = Infinity;
    #newAfter = Infinity;
    #isLoading = false;
    #roster;
    #isClosed = false;
    #timer;
    #told = 0;
    #wanted = 0;

    /** *app*: { store, outbox, api, confirm(question, verb), complain(text), onback() }; *wanted*: the seq to show. */
    constructor(id, main, app, wanted = 0) {
        this.id = id;
        this.#app = app;
        this.#wanted = wanted;
        this.#more = h("p", { class: "chat-more", hidden: true }, h("button", { class: "chat-button", type: "button", onclick: () => this.#loadOlder() }, gettext("Older messages")));
        const rows = h("div", { class: "chat-rows" }, this.#more, this.#history, this.#live);
        this.#scroller = h("div", { class: "chat-scroller", role: "region", "aria-label": gettext("Messages"), tabindex: 0, "aria-busy": "true" }, rows);
        this.#latest = h("button", { class: "chat-button chat-latest", type: "button", hidden: true, onclick: () => this.toEnd() }, icon("down"), gettext("Newest"));
        this.#roster = new Roster(app.api, app.store, id);
        this.composer = new Composer(id, this.#name, this.#roster, {
            onsend: (text, mentions, replyTo) => this.#send(text, mentions, replyTo),
            onedit: (seq, text, mentions) => this.#rewrite(seq, text, mentions),
            ontype: () => this.#presence?.typed(),
            lastOwn: () => app.store.messages(id).findLast((message) => message.sender === app.store.me && isEditable(message)),
        });
        main.replaceChildren(this.#bar(), this.#scroller, this.#latest, this.#typing, this.#typingSaid, this.#foot);
        this.#scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
        this.#renderFoot(this.#chat);
        if (app.hasPresence) this.#presence = new Presence(app.api, app.store, id, () => this.#renderPresence());
        if (this.#chat.isLoaded && (!wanted || app.store.message(id, wanted))) this.#opened();
        else this.load();
    }

    get #chat() {
        return this.#app.store.chats.get(this.id);
    }

    get #name() {
        return titleOf(this.#chat, this.#app.store.me, this.#app.store.nameOf);
    }

    #bar() {
        const back = h("a", { class: "chat-round chat-back", href: this.#app.chats, "aria-label": gettext("All chats"), onclick: (event) => this.#app.onback(event) }, icon("back"));
        const members = h("a", { class: "chat-button", href: `${this.#app.address(this.id)}members/` }, icon("people"), this.#count, this.#members);
        const search = h("a", { class: "chat-round", href: `${this.#app.address(this.id)}search/`, "aria-label": gettext("Search in this chat") }, icon("search"));
        return h("header", { class: "chat-bar" }, back, h("div", { class: "chat-heading" }, this.#title, this.#here), search, members);
    }

    /** Load the newest page of the history, trying until it arrives or is refused. Called again when the sync starts afresh. */
    async load({ isAgain = false } = {}) {
        if (this.#isLoading || this.#isClosed) return;
        this.#isLoading = true;
        this.#scroller.setAttribute("aria-busy", "true");
        try {
            const query = this.#wanted ? { around: this.#wanted, limit: PAGE } : { limit: PAGE };
            const page = await this.#app.api.messages(this.id, query);
            if (this.#isClosed) return;
            this.#app.store.addPage(this.id, page, this.#wanted ? "around" : "newest");
            if (this.#liveAfter === Infinity) this.#opened();
            else this.#reveal();
        } catch (error) {
            if (!isAgain) this.#app.complain(error);
            const isPassing = error.name === "Unreachable" || error.isTemporary;
            if (isPassing) setTimeout(() => this.load({ isAgain: true }), Math.max(AGAIN, (error.retryAfter ?? 0) * 1000));
        } finally {
            this.#isLoading = false;
            this.#scroller.setAttribute("aria-busy", "false");
        }
    }

    #opened() {
        this.#liveAfter = this.#chat.last_seq;
        this.#scroller.setAttribute("aria-busy", "false");
        if (this.#chat.unread) this.#newAfter = this.#chat.read_seq;
        this.render();
        const divider = this.#scroller.querySelector(".chat-divider");
        if (divider && this.#scroller.scrollHeight > this.#scroller.clientHeight) divider.scrollIntoView({ block: "start" });
        this.#reveal();
        this.#scrolled();
    }

    /** Show the message with this seq, with the history around it. */
    async show(seq) {
        this.#wanted = seq;
        if (this.#app.store.message(this.id, seq)) this.#reveal();
        else await this.load();
    }

    /** Scroll to the message that was asked for. */
    #reveal() {
        const seq = this.#wanted;
        this.#wanted = 0;
        if (!seq || this.#liveAfter === Infinity) return;
        const row = document.getElementById(`message-${seq}`);
        for (const old of this.#scroller.querySelectorAll(".chat-message.wanted")) old.classList.remove("wanted");
        if (!row) return this.#app.complain(new Error(gettext("This message is no longer there.")));
        row.classList.add("wanted");
        row.scrollIntoView({ block: "center" });
        row.focus({ preventScroll: true });
    }

    #loadOlder() {
        const first = this.#app.store.messages(this.id)[0]?.seq;
        if (this.#chat?.hasOlder && first) this.#loadPage("older", { before: first });
    }

    #loadNewer() {
        const last = this.#app.store.messages(this.id).at(-1)?.seq;
        if (this.#chat?.hasNewer && last) this.#loadPage("newer", { after: last });
    }

    async #loadPage(kind, query) {
        if (this.#isLoading) return;
        this.#isLoading = true;
        this.#scroller.setAttribute("aria-busy", "true");
        try {
            const page = await this.#app.api.messages(this.id, { ...query, limit: PAGE });
            this.#keepPlace(() => this.#app.store.addPage(this.id, page, kind));
        } catch (error) {
            this.#app.complain(error);
        } finally {
            this.#isLoading = false;
            this.#scroller.setAttribute("aria-busy", "false");
        }
        this.#scrolled();
    }

    render() {
        const chat = this.#chat;
        if (!chat || this.#liveAfter === Infinity) return;
        const { store, outbox } = this.#app;
        this.#title.textContent = this.#title.title = this.#name;
        this.#count.textContent = chat.member_count;
        this.#members.textContent = ` ${ngettext("member", "members", chat.member_count)}`;
        if (!this.#isSeen() && chat.unread && this.#newAfter === Infinity) this.#newAfter = chat.read_seq;
        const messages = store.messages(this.id);
        const sent = new Set(messages.map((message) => message.client_id));
        const rows = rowsOf({
            chat, messages, me: store.me, nameOf: store.nameOf, newAfter: this.#newAfter,
            pending: outbox.items(this.id).filter((item) => !sent.has(item.clientId)),
            onretry: (item) => outbox.retry(item.clientId),
            onedit: (item) => this.#edit(item),
            ondelete: (message) => this.#delete(message),
            onreact: (message, emoji) => this.#react(message, emoji),
            reactions: this.#app.reactions,
            onrewrite: (message) => this.composer.edit(message),
            onreply: (message) => this.composer.replyTo(message, store.nameOf(message.sender)),
            linkTo: (seq) => `${this.#app.address(this.id)}?message=${seq}`,
            onlink: (event, seq) => this.#app.onlink(event, this.id, seq),
            quoteOf: (message) => this.#quoteOf(message),
        });
        this.#keepPlace(() => {
            if (!chat.hasOlder && this.#more.contains(document.activeElement)) this.#scroller.focus();
            this.#more.hidden = !chat.hasOlder;
            reconcile(this.#history, [...this.#gap(chat), ...rows.filter((row) => row.seq <= this.#liveAfter)]);
            reconcile(this.#live, rows.filter((row) => row.seq > this.#liveAfter));
        });
        this.#renderFoot(chat);
        this.#presence?.heard();
        this.#scrolled();
    }

    /** Who is here, and who is typing. Screen readers are told when somebody begins, but not again and again. */
    #renderPresence() {
        const names = (ids) => ids.map(this.#app.store.nameOf);
        const { here, count, typing } = this.#presence;
        this.#here.textContent = hereNow(names(here), count);
        const text = typingNow(names(typing));
        this.#typing.textContent = text;
        if (!text) this.#typingSaid.textContent = "";
        else if (performance.now() - this.#typingSaidAt > SAID_AGAIN) {
            this.#typingSaid.textContent = text;
            this.#typingSaidAt = performance.now();
        }
    }

    /** The message that a reply replies to, as it is now: { name, text }; null if it is gone. */
    #quoteOf({ reply_to: quote }) {
        const { store } = this.#app;
        const now = store.message(this.id, quote.seq) ?? quote;
        if (!now.sender || store.isDeleted(this.id, quote.seq)) return null;
        return { name: store.nameOf(now.sender), text: (now.rich ? plain(now.rich) : now.text).slice(0, QUOTED) || gettext("Picture") };
    }

    #gap(chat) {
        if (!chat.missed || chat.hasOlder) return [];
        const text = interpolate(ngettext("%(count)s older message is no longer kept", "%(count)s older messages are no longer kept", chat.missed), { count: chat.missed });
        return [{ key: "gap", state: text, build: () => h("p", { class: "chat-event" }, text) }];
    }

    #renderFoot(chat) {
        const mutedFor = chat.muted_until ? Date.parse(chat.muted_until) - Date.now() : 0;
        let silence = chat.is_closed ? gettext("This chat is closed. It can be read.") : "";
        if (!silence && mutedFor > 0) silence = mutedFor < 864e5 ? interpolate(gettext("You are muted until %(time)s."), { time: timeOf(chat.muted_until) }) : gettext("You are muted.");
        if (silence) this.#foot.replaceChildren(h("div", { class: "chat-composer" }, h("p", { class: "chat-silence" }, silence)));
        else if (this.composer.node.parentNode !== this.#foot) this.#foot.replaceChildren(this.composer.node);
    }

    /** Change the rows so that the visible ones stay where they are. */
    #keepPlace(change) {
        if (this.#isAtEnd()) {
            change();
            this.#scroller.scrollTop = 0; // the end, since the scroller is reversed
            return;
        }
        const top = this.#scroller.getBoundingClientRect().top;
        const anchor = [...this.#rows()].find((row) => row.getBoundingClientRect().bottom > top);
        const before = anchor?.getBoundingClientRect().top;
        change();
        if (anchor?.isConnected) this.#scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    }

    *#rows() {
        yield* this.#history.children;
        yield* this.#live.children;
    }

    #isAtEnd() {
        return !this.#chat?.hasNewer && this.#scroller.scrollTop > -AT_END;
    }

    async toEnd() {
        if (this.#chat?.hasNewer) {
            this.#app.store.forget(this.id);
            await this.load();
        }
        this.#scroller.scrollTop = 0;
        this.#scrolled();
        this.composer.focus();
    }

    #scrolled() {
        const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
        if (this.#liveAfter !== Infinity && scrollHeight - clientHeight + scrollTop < NEAR && scrollHeight > clientHeight) this.#loadOlder();
        else if (this.#liveAfter !== Infinity && scrollTop > -NEAR) this.#loadNewer();
        this.#latest.hidden = this.#isAtEnd();
        this.look();
    }

    #isSeen() {
        return document.visibilityState === "visible" && document.hasFocus() && this.#isAtEnd();
    }

    /** Note the visible messages as read. */
    look() {
        const chat = this.#chat;
        if (this.#isClosed || this.#wanted || !chat?.isLoaded || document.visibilityState !== "visible" || !document.hasFocus()) return;
        const seq = this.#isAtEnd() ? chat.last_seq : this.#lastInSight();
        if (this.#app.store.read(this.id, seq)) this.tell();
    }

    #lastInSight() {
        const bottom = this.#scroller.getBoundingClientRect().bottom;
        const messages = this.#app.store.messages(this.id);
        const bySeq = new Map(messages.map((message) => [`m ${message.seq}`, message.seq]));
        const seen = [...this.#rows()].filter((row) => row.getBoundingClientRect().bottom <= bottom && bySeq.has(row.dataset.key));
        return bySeq.get(seen.at(-1)?.dataset.key) ?? 0;
    }

    /** Report the reading position to the server; again after an outage. */
    tell() {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(async () => {
            const seq = this.#chat?.read_seq ?? 0;
            if (seq <= this.#told) return;
            const isTold = await this.#app.api.read(this.id, seq).then(() => true, () => false); // reported again after an outage
            if (isTold) this.#told = seq;
        }, REST);
    }

    #send(text, mentions, replyTo) {
        this.#newAfter = Infinity;
        this.#presence?.sent();
        this.#app.outbox.add(this.id, text, mentions, replyTo);
        this.toEnd();
    }

    #edit(item) {
        this.#app.outbox.remove(item.clientId);
        this.composer.put(item.text);
    }

    /** Change the text of a message; return whether the server has accepted it. */
    async #rewrite(seq, text, mentions) {
        try {
            const { edited_at } = await this.#app.api.edit(this.id, seq, { text, mentions });
            this.#app.store.change(this.id, seq, { text, mentions, edited_at, rich: null });
            return true;
        } catch (error) {
            this.#app.complain(error.name === "Unreachable" ? new Error(gettext("There is no connection. Try again later.")) : error);
            return false;
        }
    }

    /** Add a reaction, or remove it if it is there. */
    async #react({ seq }, emoji) {
        const { store, api } = this.#app;
        const before = store.message(this.id, seq)?.reactions ?? {};
        const isOn = !before[emoji]?.includes(store.me);
        try {
            await api.react(this.id, seq, emoji, isOn);
        } catch (error) {
            return this.#app.complain(error.name === "Unreachable" ? new Error(gettext("There is no connection. Try again later.")) : error);
        }
        const now = store.message(this.id, seq)?.reactions ?? {}; // the news may have been faster
        const others = (now[emoji] ?? []).filter((id) => id !== store.me);
        const { [emoji]: _old, ...rest } = now;
        const who = isOn ? [...others, store.me] : others;
        store.change(this.id, seq, { reactions: who.length ? { ...now, [emoji]: who } : rest });
    }

    async #delete(message) {
        if (!(await this.#app.confirm(gettext("Delete this message for everyone?"), gettext("Delete")))) return;
        try {
            await this.#app.api.deleteMessage(this.id, message.seq);
            this.#app.store.remove(this.id, message.seq);
        } catch (error) {
            this.#app.complain(error);
        }
        this.composer.focus();
    }

    /** Members have changed: ask again who can be mentioned. */
    forgetPeople() {
        this.#roster.forget();
    }

    close() {
        this.#isClosed = true;
        this.#presence?.close();
        clearTimeout(this.#timer);
        if ((this.#chat?.read_seq ?? 0) > this.#told) this.#app.api.read(this.id, this.#chat.read_seq).catch(() => {}); // reported on the next visit
        this.#app.store.trim(this.id);
    }
}
