/* The list of chats: one tab stop, arrow keys between the chats, badges; a search field if there are many. */

import { gettext } from "../i18n.js";
import { avatar, h, reconcile, shortly } from "./dom.js";
import { preview, titleOf } from "./sentences.js";

const MANY = 8; // with this many chats or more, the list has a search field
const SHOWN = 100; // the most chats that are shown at once

export class List {
    #items;
    #find;
    #store;
    #address;
    #open = "";
    #shown = SHOWN;
    #more = h("p", { class: "chat-more", hidden: true }, h("button", { class: "chat-button", type: "button", onclick: () => this.#showMore() }, gettext("More chats")));

    /** *address* maps a chat's id to its page; *onopen* is called with the id if the page need not be loaded. */
    constructor(root, store, address, onopen) {
        this.#store = store;
        this.#address = address;
        this.#items = root.querySelector(".chat-items");
        this.#find = h("input", { type: "search", placeholder: gettext("Find a chat"), "aria-label": gettext("Find a chat"), oninput: () => this.render() });
        root.querySelector(".chat-unavailable")?.remove(); // the status shows this from now on
        this.#items.before(h("div", { class: "chat-find", hidden: true }, this.#find));
        root.querySelector(".chat-more-chats")?.remove();
        this.#items.after(this.#more);
        this.#items.replaceChildren();
        this.#items.addEventListener("keydown", (event) => this.#move(event));
        this.#items.addEventListener("focusin", ({ target }) => this.#rove(target));
        if (onopen) this.#items.addEventListener("click", (event) => this.#clicked(event, onopen));
    }

    set open(id) {
        this.#open = id;
        this.render();
    }

    focus() {
        this.#items.querySelector("a[tabindex='0']")?.focus();
    }

    render() {
        const all = this.#store.sorted();
        this.#find.parentNode.hidden = all.length < MANY && !this.#find.value;
        const wanted = this.#find.value.trim().toLowerCase();
        const chats = all.filter((chat) => this.#title(chat).toLowerCase().includes(wanted));
        const none = wanted ? gettext("No chat has this name.") : gettext("No chats yet.");
        const shown = chats.slice(0, this.#shown);
        this.#more.hidden = shown.length === chats.length;
        reconcile(this.#items, shown.length ? shown.map((chat) => this.#row(chat)) : [said(none)]);
        this.#rove(this.#items.querySelector("a:focus") ?? this.#items.querySelector("a[aria-current]") ?? this.#items.querySelector("a"));
    }

    /** Focus the first of the new chats, since the button may be gone. */
    #showMore() {
        const at = this.#shown;
        this.#shown += SHOWN;
        this.render();
        this.#items.children[at]?.querySelector("a")?.focus();
    }

    #title = (chat) => titleOf(chat, this.#store.me, this.#store.nameOf);

    #row(chat) {
        const title = this.#title(chat);
        const last = preview(chat, this.#store.me, this.#store.nameOf);
        const at = chat.last_message ? shortly(chat.last_message.sent_at) : "";
        const isOpen = chat.id === this.#open;
        const state = JSON.stringify([title, last, at, chat.unread, chat.mentions, isOpen]);
        const fill = (link) => {
            link.className = `chat-item${chat.unread ? " unread" : ""}`;
            if (isOpen) link.setAttribute("aria-current", "page");
            else link.removeAttribute("aria-current");
            link.replaceChildren(
                avatar(title, chat.id),
                h("span", { class: "chat-item-title" }, title),
                h("time", { class: "chat-item-time", datetime: chat.last_message?.sent_at }, at),
                h("span", { class: "chat-item-last" }, last),
                badges(chat),
            );
        };
        return {
            key: chat.id,
            state,
            build: () => {
                const link = h("a", { href: this.#address(chat.id), tabindex: -1 });
                fill(link);
                return h("li", {}, link);
            },
            update: (node) => fill(node.firstChild),
        };
    }

    #move(event) {
        const links = [...this.#items.querySelectorAll("a")];
        const at = links.indexOf(document.activeElement);
        const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
        if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        links[Math.max(0, Math.min(to, links.length - 1))]?.focus();
    }

    #rove(link) {
        if (!link || link.nodeName !== "A") return;
        for (const other of this.#items.querySelectorAll("a[tabindex='0']")) other.tabIndex = -1;
        link.tabIndex = 0;
    }

    #clicked(event, onopen) {
        const item = event.target.closest("li");
        if (!item?.dataset.key || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        onopen(item.dataset.key);
    }
}

function badges(chat) {
    const hidden = (text) => h("span", { class: "chat-hidden" }, text);
    return h("span", { class: "chat-badges" },
        chat.mentions > 0 && h("span", { class: "chat-badge mention" }, h("span", { "aria-hidden": "true" }, "@"), hidden(gettext("You are mentioned."))),
        chat.unread > 0 && h("span", { class: "chat-badge" }, chat.unread > 99 ? "99+" : String(chat.unread), hidden(` ${gettext("unread")}`)));
}

function said(text) {
    return { key: "none", state: text, build: () => h("li", { class: "chat-none" }, text) };
}
