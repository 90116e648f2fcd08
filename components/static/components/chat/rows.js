/*
 * The rows of a conversation, as descriptions for reconcile(): days, events, messages, messages being sent, the people
 * who have seen them, and the line above new ones. The user's own message has the same row before and after the server
 * has it.
 */

import { avatar, dayKey, dayOf, h, httpAddress, icon, link, rich, timeOf } from "./dom.js";
import { seenBy, sentence } from "./sentences.js";

const TOGETHER = 5 * 60_000; // ms: messages of one sender that are closer together stand under one name

/** *view*: { chat, messages, pending, me, nameOf, newAfter, onretry, onedit, ondelete } */
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
        const message = { sender: view.me, text: item.text, mentions: item.mentions, client_id: item.clientId, sent_at: new Date(item.at).toISOString() };
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
    const build = () => h("p", { class: "chat-divider" }, h("span", {}, "New messages"));
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
    const fill = (node) => {
        const kinds = [isMine && "mine", isFollowing ? "follows" : "first", message.item && "pending"];
        node.className = ["chat-message", ...kinds.filter(Boolean)].join(" ");
        node.querySelector(".chat-by").hidden = isFollowing;
        node.querySelector(".chat-by time").replaceWith(time(message));
        node.querySelector(".chat-fate")?.remove();
        if (message.item) node.querySelector(".chat-bubble").append(fate(message.item, view));
        node.querySelector(".chat-delete")?.remove();
        if (mayDelete) node.append(bin(message, name, view));
    };
    const build = () => {
        const bubble = h("div", { class: `chat-bubble${mentioned.some((who) => who.isMe) ? " mentions-me" : ""}` },
            h("p", { class: "chat-by" }, h("b", { class: isMine ? "chat-hidden" : null }, name), " ", time(message)),
            message.text && h("p", { class: "chat-text", dir: "auto" }, rich(message.text, mentioned)), picture(message.data));
        const node = h("div", {}, !isMine && avatar(name, message.sender), bubble);
        fill(node);
        return node;
    };
    const state = JSON.stringify([name, isFollowing, message.item?.failed ?? null, mayDelete, message.seq ?? 0]);
    return { key: keyOf(message, view), seq: message.seq ?? Infinity, state, build, update: fill };
}

function time(message) {
    return h("time", { datetime: message.sent_at, title: new Date(message.sent_at).toLocaleString() }, timeOf(message.sent_at));
}

/** A picture message has a link: pictures of other sites are not loaded, and a click opens them. */
function picture(data) {
    const address = typeof data?.url === "string" && httpAddress(data.url);
    return address ? h("span", { class: "chat-picture" }, link(address, typeof data.title === "string" ? data.title : address)) : null;
}

function fate(item, { onretry, onedit }) {
    if (!item.failed) return h("p", { class: "chat-fate" }, icon("clock"), "Sending…");
    return h("div", { class: "chat-fate failed" },
        h("p", { class: "chat-why" }, `Not sent. ${item.failed}`),
        h("button", { class: "chat-button", type: "button", onclick: () => onretry(item) }, "Try again"),
        h("button", { class: "chat-button", type: "button", onclick: () => onedit(item) }, "Edit"));
}

function bin(message, name, { ondelete }) {
    const label = `Delete the message of ${name}, ${timeOf(message.sent_at)}`;
    return h("button", { class: "chat-round chat-delete", type: "button", "aria-label": label, onclick: () => ondelete(message) }, icon("bin"));
}
