/*
 * The rows of a conversation, as descriptions for reconcile(): days, events, messages, messages being sent, the people
 * who have seen them, and the line above new ones. The user's own message has the same row before and after the server
 * has it.
 */

import { gettext, interpolate } from "../i18n.js";
import { avatar, built, dayKey, dayOf, h, httpAddress, icon, instantOf, link, timeOf } from "./dom.js";
import { seenBy, sentence } from "./sentences.js";

const TOGETHER = 5 * 60_000; // ms: messages of one sender that are closer together stand under one name

/** *view*: { chat, messages, pending, me, nameOf, newAfter, onretry, onedit, ondelete, onreply, onrewrite, onreact, reactions, linkTo(seq), onlink(event, seq), quoteOf } */
export function rowsOf(view) {
    const rows = [];
    let before = null;
    let isNew = false;
    for (const message of view.messages) {
        const isFirstOfDay = !before || dayKey(before.sent_at) !== dayKey(message.sent_at);
        if (isFirstOfDay) rows.push(day(message));
        if (!isNew && message.seq > view.newAfter && !message.event && message.sender !== view.me) {
            isNew = true;
            rows.push(divider(message));
            before = null;
        }
        rows.push(message.event ? happened(message, view) : said(message, follows(before, message), view));
        before = message;
    }
    placeSeen(rows, view);
    for (const item of view.pending) {
        const message = { sender: view.me, text: item.text, mentions: item.mentions, client_id: item.clientId, reply_to: item.replyTo, sent_at: new Date(item.at).toISOString() };
        rows.push(said({ ...message, item }, follows(before, message), view));
        before = message;
    }
    return rows;
}

function follows(before, message) {
    if (!before || before.event || before.sender !== message.sender) return false;
    return Date.parse(message.sent_at) - Date.parse(before.sent_at) < TOGETHER && dayKey(before.sent_at) === dayKey(message.sent_at);
}

function day(message) {
    const text = dayOf(message.sent_at);
    return { key: `day ${dayKey(message.sent_at)}`, seq: message.seq, state: text, build: () => h("p", { class: "chat-day" }, text) };
}

function divider(message) {
    const build = () => h("p", { class: "chat-divider" }, h("span", {}, gettext("New messages")));
    return { key: `new ${message.seq}`, seq: message.seq, state: "", build };
}

function happened(message, view) {
    const text = sentence(message.event, view.nameOf);
    return { key: `m ${message.seq}`, seq: message.seq, state: text, build: () => h("p", { class: "chat-event" }, text) };
}

/** The line under the newest of the user's own messages, if anybody has read that far. */
function placeSeen(rows, view) {
    const mine = view.messages.findLast((message) => message.sender === view.me && !message.event);
    const readers = Object.entries(view.chat.reads ?? {}).filter(([user]) => user !== view.me);
    if (!mine || !readers.length) return;
    const names = readers.filter(([, seq]) => seq >= mine.seq).map(([user]) => view.nameOf(user)).sort();
    if (!names.length) return;
    const text = seenBy(names, readers.length);
    const at = rows.findLastIndex((row) => row.key === keyOf(mine, view));
    const build = () => h("p", { class: "chat-seen", "aria-live": "off" }, text);
    rows.splice(at + 1, 0, { key: "seen", seq: mine.seq, state: text, build });
}

function keyOf(message, view) {
    return message.sender === view.me && message.client_id ? `c ${message.client_id}` : `m ${message.seq}`;
}

function said(message, isFollowing, view) {
    const name = view.nameOf(message.sender);
    const isMine = message.sender === view.me;
    const mentioned = (message.mentions ?? []).map((id) => ({ name: view.nameOf(id), isMe: id === view.me }));
    const mayDelete = !message.item && (isMine || view.chat.role !== "member");
    const quote = message.reply_to && view.quoteOf(message);
    const reacted = Object.entries(message.reactions ?? {}).map(([emoji, who]) => [emoji, who.map(view.nameOf)]);
    const fill = (node) => {
        const kinds = [isMine && "mine", isFollowing ? "follows" : "first", message.item && "pending", node.classList.contains("wanted") && "wanted"];
        node.className = ["chat-message", ...kinds.filter(Boolean)].join(" ");
        if (message.seq) Object.assign(node, { id: `message-${message.seq}`, tabIndex: -1 });
        const bubble = h("div", { class: `chat-bubble${mentioned.some((who) => who.isMe) ? " mentions-me" : ""}` },
            h("p", { class: "chat-by", hidden: isFollowing }, h("b", { class: isMine ? "chat-hidden" : null }, name), " ", when(message, view)),
            message.reply_to && quoted(message, quote, view),
            message.text && h("div", { class: "chat-text", dir: "auto" }, built(message.rich ?? [message.text], mentioned)), picture(message.data),
            message.edited_at && edited(message),
            reactionsOf(message, view),
            message.item && fate(message.item, view));
        node.replaceChildren(...[!isMine && avatar(name, message.sender), bubble, !message.item && menu(message, name, isMine, mayDelete, view)].filter(Boolean));
    };
    const build = () => {
        const node = h("div");
        fill(node);
        return node;
    };
    const state = JSON.stringify([name, isFollowing, message.item?.failed ?? null, mayDelete, message.seq ?? 0, quote, message.text, Boolean(message.rich), message.edited_at, mentioned, reacted]);
    return { key: keyOf(message, view), seq: message.seq ?? Infinity, state, build, update: fill };
}

/** The time of a message, which is the link to it. */
function when(message, { linkTo, onlink }) {
    const time = h("time", { datetime: message.sent_at, title: instantOf(message.sent_at) }, timeOf(message.sent_at));
    if (!message.seq) return h("span", { class: "chat-when" }, time);
    return h("a", { class: "chat-when", href: linkTo(message.seq), onclick: (event) => onlink(event, message.seq) }, time);
}

/** The message that this one replies to: a link to it, or a note that it is gone. */
function quoted({ reply_to: { seq } }, quote, { linkTo, onlink }) {
    if (!quote) return h("p", { class: "chat-quote gone" }, gettext("Reply to a message that is no longer there"));
    return h("a", { class: "chat-quote", href: linkTo(seq), onclick: (event) => onlink(event, seq) }, h("b", {}, quote.name), " ", quote.text);
}

/** A picture message has a link: pictures of other sites are not loaded, and a click opens them. */
function picture(data) {
    const address = typeof data?.url === "string" && httpAddress(data.url);
    return address ? h("span", { class: "chat-picture" }, link(address, typeof data.title === "string" ? data.title : address)) : null;
}

function fate(item, { onretry, onedit }) {
    if (!item.failed) return h("p", { class: "chat-fate" }, icon("clock"), gettext("Sending…"));
    return h("div", { class: "chat-fate failed" },
        h("p", { class: "chat-why" }, `${gettext("Not sent.")} ${item.failed}`),
        h("button", { class: "chat-button", type: "button", onclick: () => onretry(item) }, gettext("Try again")),
        h("button", { class: "chat-button", type: "button", onclick: () => onedit(item) }, gettext("Edit")));
}

/** The reactions: buttons that add or remove one's own. */
function reactionsOf(message, { me, nameOf, onreact }) {
    const buttons = Object.entries(message.reactions ?? {}).map(([emoji, who]) => {
        const names = who.map(nameOf).join(", ");
        const isMine = who.includes(me);
        return h("button", {
            class: `chat-reaction${isMine ? " mine" : ""}`, type: "button", title: names, "aria-pressed": String(isMine), onclick: () => onreact(message, emoji),
        }, emoji, " ", h("span", {}, String(who.length)), h("span", { class: "chat-hidden" }, ` ${names}`));
    });
    return buttons.length > 0 && h("div", { class: "chat-reactions" }, ...buttons);
}

function edited({ edited_at: at }) {
    return h("p", { class: "chat-edited" }, h("time", { datetime: at, title: instantOf(at) }, gettext("edited")));
}

/** Whether its sender can change the text. Data, such as a picture, would be lost. */
export function isEditable(message) {
    return !message.event && !message.data && !message.is_unreadable;
}

/** What can be done with a message, behind one button. */
function menu(message, name, isMine, mayDelete, { ondelete, onreply, onrewrite, onreact, reactions }) {
    const label = `${name}, ${timeOf(message.sent_at)}`;
    const verb = (kind, text, about, act) => h("button", {
        class: "chat-verb", type: "button", "aria-label": about,
        onclick: (event) => {
            event.target.closest("details").open = false;
            act(message);
        },
    }, icon(kind), text);
    return h("details", { class: "chat-menu", name: "chat-menu" },
        h("summary", { class: "chat-round", "aria-label": interpolate(gettext("Actions for the message of %(name)s"), { name: label }) }, icon("dots")),
        h("div", { class: "chat-menu-sheet" },
            h("div", { class: "chat-emojis" }, ...reactions.map((emoji) => h("button", {
                class: "chat-round", type: "button", "aria-label": interpolate(gettext("React with %(emoji)s to the message of %(name)s"), { emoji, name: label }),
                onclick: (event) => {
                    event.target.closest("details").open = false;
                    onreact(message, emoji);
                },
            }, emoji))),
            verb("reply", gettext("Reply"), interpolate(gettext("Reply to the message of %(name)s"), { name: label }), onreply),
            isMine && isEditable(message) && verb("pencil", gettext("Edit"), interpolate(gettext("Edit the message of %(name)s"), { name: label }), onrewrite),
            mayDelete && verb("bin", gettext("Delete"), interpolate(gettext("Delete the message of %(name)s"), { name: label }), ondelete)));
}
