/*
 * The chat page. Without this script it is a page of links and forms. With it, the content from the server is replaced
 * when the first answer arrives, and chats open without loading the page.
 */

import { gettext } from "../i18n.js";
import { Api } from "./api.js";
import { Conversation } from "./conversation.js";
import { h, icon } from "./dom.js";
import { List } from "./list.js";
import { Outbox } from "./outbox.js";
import { titleOf } from "./sentences.js";
import { Store } from "./store.js";
import { Sync } from "./sync.js";

const root = document.getElementById("chat");
const main = root.querySelector(".chat-main");
const status = root.querySelector(".chat-status");
const suffix = document.title.slice(root.dataset.title.length); // the part that the site adds to its titles
const isForm = ["members", "new", "search"].includes(root.dataset.view); // pages with a form beside the live list

const store = new Store(root.dataset.user);
const api = new Api(root.dataset.api, root.querySelector("[name=csrfmiddlewaretoken]").value);
const outbox = new Outbox(api, store);
const sync = new Sync(api, store);
const address = (id) => `${root.dataset.chats}${encodeURIComponent(id)}/`;
const list = new List(root, store, address, isForm ? null : (id) => go(id));
const reactions = (root.dataset.reactions ?? "").split(" ").filter(Boolean); // a page of an earlier release has none
const hasPresence = "presence" in root.dataset;
const app = { hasPresence, reactions, store, outbox, api, address, chats: root.dataset.chats, confirm, complain, onback, onlink };
let conversation = null;
let complaint = "";

const STATES = {
    connecting: () => [],
    online: () => (store.unavailable.length ? [gettext("Some of your chats cannot be shown at the moment. They are not lost.")] : []),
    offline: () => [gettext("You are offline. Messages that you write will be sent when you are back.")],
    unavailable: () => [gettext("The server cannot be used at the moment. Messages that you write will be sent when it is back.")],
    "signed-out": () => [gettext("You are logged out."), " ", h("a", { href: location.href }, gettext("Log in again")), ". ", gettext("Messages that you have written are kept.")],
};

function renderStatus() {
    status.replaceChildren(...(complaint ? [complaint] : STATES[sync.state]()));
}

function complain(error) {
    if (error.name === "Unreachable") return; // the status of the connection shows this
    complaint = error.message;
    renderStatus();
    setTimeout(() => {
        complaint = "";
        renderStatus();
    }, 6_000);
}

function renderTitle() {
    const { unread } = store;
    const chat = conversation && store.chats.get(conversation.id);
    const name = isForm ? root.dataset.title : chat ? titleOf(chat, store.me, store.nameOf) : gettext("Chats");
    document.title = `${unread ? `(${unread}) ` : ""}${name}${suffix}`;
}

/** Keep the badge of the site, {% chat_badge %}, up to date. */
function renderBadge() {
    const { unread, mentions } = store;
    const hidden = h("span", { class: "chat-hidden" }, ` ${mentions ? gettext("unread, some mention you") : gettext("unread")}`);
    for (const badge of document.querySelectorAll(".components-chat-badge")) {
        badge.dataset.unread = unread;
        badge.replaceChildren(...(unread ? [mentions ? h("span", { "aria-hidden": "true" }, "@") : "", unread > 99 ? "99+" : String(unread), hidden] : []));
    }
}

/** Open a chat, or "" for none, without loading the page. */
function go(id, message = 0) {
    const query = message ? `?message=${message}` : "";
    history.pushState(null, "", id ? `${address(id)}${query}` : root.dataset.chats);
    open(id, message);
    if (id && !message && !matchMedia("(pointer: coarse)").matches) conversation?.composer.focus();
}

/** Open a chat, at the message with this seq or else at its end. */
function open(id, message = 0) {
    if (conversation?.id === id) return message ? conversation.show(message) : conversation.toEnd();
    conversation?.close();
    conversation = null;
    const chat = store.chats.get(id);
    root.dataset.view = chat ? "conversation" : "list";
    if (chat) conversation = new Conversation(id, main, app, message);
    else nothingOpen();
    list.open = chat ? id : "";
    renderTitle();
}

function nothingOpen() {
    const isNew = !store.chats.size;
    main.replaceChildren(h("div", { class: "chat-empty" }, icon("bubbles"),
        h("h2", { id: "chat-title" }, isNew ? gettext("It is quiet here") : gettext("Choose a chat")),
        h("p", {}, isNew ? gettext("Start a chat and invite others by their user names.") : gettext("Messages that arrive while you are away wait for you.")),
        isNew && h("a", { class: "chat-button primary", href: root.dataset.create }, gettext("New chat"))));
}

function idInAddress() {
    const rest = location.pathname.slice(root.dataset.chats.length).replace(/\/$/, "");
    return decodeURIComponent(rest);
}

function messageInAddress() {
    return Number(new URLSearchParams(location.search).get("message")) || 0;
}

/** Follow a link to a message without loading the page, unless it is to open elsewhere. */
function onlink(event, id, message) {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(id, message);
}

function onback(event) {
    event.preventDefault();
    go("");
    list.focus();
}

/** Ask a question in a dialog of the page; Esc means no. */
function confirm(question, verb) {
    const dialog = h("dialog", { "aria-labelledby": "chat-question" },
        h("h2", { id: "chat-question" }, question),
        h("form", { method: "dialog", class: "chat-verbs" },
            h("button", { class: "chat-button", value: "" }, gettext("Cancel")),
            h("button", { class: "chat-button danger", value: "yes" }, verb)));
    root.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => dialog.addEventListener("close", () => {
        dialog.remove();
        resolve(dialog.returnValue === "yes");
    }));
}

function started() {
    const written = main.querySelector("textarea")?.value; // text that was written before this script ran
    const wasFocused = main.contains(document.activeElement);
    open(idInAddress(), messageInAddress());
    if (written && conversation?.composer.isEmpty) conversation.composer.put(written);
    else if (wasFocused) conversation?.composer.focus();
}

store.addEventListener("change", ({ detail }) => {
    list.render();
    if (conversation && detail.has(conversation.id)) {
        if (store.chats.has(conversation.id)) conversation.render();
        else go("");
    }
    renderTitle();
    renderBadge();
    renderStatus();
});

outbox.addEventListener("change", () => conversation?.render());

let isStarted = false;
sync.addEventListener("news", ({ detail }) => {
    outbox.settle(detail.messages);
    if (detail.messages.some((message) => message.event)) conversation?.forgetPeople();
    if (!isStarted && !isForm) started();
    else if (detail.fresh) conversation?.load();
    isStarted = true;
    root.dataset.live = ""; // from now on this script controls the page
});

sync.addEventListener("state", () => {
    renderStatus();
    if (sync.state !== "online") return;
    outbox.flush();
    conversation?.tell();
});

window.addEventListener("popstate", () => (isForm ? null : open(idInAddress(), messageInAddress())));
for (const event of ["focus", "visibilitychange"]) window.addEventListener(event, () => conversation?.look());
document.addEventListener("visibilitychange", () => conversation?.look());
root.addEventListener("click", ({ target }) => {
    for (const menu of root.querySelectorAll(".chat-menu[open]")) if (!menu.contains(target)) menu.open = false;
});
root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && conversation && !root.querySelector("dialog")) list.focus();
});

sync.run();
