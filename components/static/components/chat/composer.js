/*
 * Where messages are written. Enter sends and Shift+Enter starts a line; on touch screens Enter starts a line.
 * "@" offers the names of the members: arrow keys choose, Enter or Tab takes, Esc closes. What is being written stays
 * with its chat while another is open.
 */

import { avatar, h, icon } from "./dom.js";

const OFFERED = 6; // names at once
const started = new Map(); // chat id -> what is being written there

export class Composer {
    node;
    #text;
    #names;
    #chat;
    #people;
    #chosen = 0;
    #offered = [];

    /** *people()* gives the promise of [{ id, name }] who can be mentioned; *onsend(text, mentions)*. */
    constructor(chat, title, people, onsend) {
        this.#chat = chat;
        this.#people = people;
        this.#names = h("ul", { class: "chat-names", id: "chat-names", role: "listbox", "aria-label": "Members", hidden: true });
        this.#text = h("textarea", {
            name: "text", rows: 1, placeholder: "Message", "aria-label": `Message to ${title}`, "aria-autocomplete": "list",
            "aria-controls": "chat-names", enterkeyhint: "send",
            onkeydown: (event) => this.#pressed(event), oninput: () => this.#written(), onblur: () => this.#close(),
        });
        this.#text.value = started.get(chat) ?? "";
        const send = h("button", { class: "chat-round primary", type: "submit", "aria-label": "Send" }, icon("send"));
        this.node = h("form", { class: "chat-composer" }, this.#names, h("div", { class: "chat-field" }, this.#text, send));
        this.node.addEventListener("submit", (event) => {
            event.preventDefault();
            this.#send(onsend);
        });
        this.#names.addEventListener("mousedown", (event) => this.#picked(event));
    }

    focus() {
        this.#text.focus({ preventScroll: true });
    }

    get isEmpty() {
        return !this.#text.value;
    }

    /** Put *text* there, before what is being written. */
    put(text) {
        this.#text.value = [text, this.#text.value].filter(Boolean).join("\n");
        this.#written();
        this.focus();
    }

    async #send(onsend) {
        const text = this.#text.value.trim();
        if (!text) return;
        this.#text.value = "";
        this.#written();
        this.focus();
        onsend(text, mentionsIn(text, await this.#people()));
    }

    #pressed(event) {
        if (event.isComposing) return;
        if (!this.#names.hidden && this.#pressedInNames(event)) return;
        const isTouch = matchMedia("(pointer: coarse)").matches;
        if (event.key === "Enter" && !event.shiftKey && !isTouch) {
            event.preventDefault();
            this.node.requestSubmit();
        }
    }

    #pressedInNames(event) {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step) this.#choose((this.#chosen + step + this.#offered.length) % this.#offered.length);
        else if (["Enter", "Tab"].includes(event.key)) this.#take(this.#offered[this.#chosen]);
        else if (event.key === "Escape") this.#close();
        else return false;
        event.preventDefault();
        event.stopPropagation();
        return true;
    }

    #written() {
        if (this.#text.value) started.set(this.#chat, this.#text.value);
        else started.delete(this.#chat);
        if (!CSS.supports("field-sizing: content")) {
            this.#text.style.height = "auto";
            this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
        }
        this.#offer();
    }

    /** The word after an "@" that the caret stands in; null if it stands in none. */
    #asked() {
        const before = this.#text.value.slice(0, this.#text.selectionStart);
        return before.match(/(?:^|\s)@([^\s@]*)$/)?.[1] ?? null;
    }

    async #offer() {
        const asked = this.#asked();
        const people = asked === null ? [] : await this.#people();
        if (asked !== this.#asked()) return; // written on in the meantime
        const fits = ({ name }) => name.toLowerCase().startsWith((asked ?? "").toLowerCase());
        this.#offered = asked === null ? [] : people.filter(fits).slice(0, OFFERED);
        if (!this.#offered.length) return this.#close();
        const options = this.#offered.map(({ id, name }, index) => h("li", { role: "option", id: `chat-name-${index}` }, avatar(name, id), name));
        this.#names.replaceChildren(...options);
        this.#names.hidden = false;
        this.#choose(0);
    }

    #choose(index) {
        this.#chosen = index;
        [...this.#names.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
        this.#names.children[index].scrollIntoView({ block: "nearest" });
        this.#text.setAttribute("aria-activedescendant", `chat-name-${index}`);
    }

    #picked(event) {
        event.preventDefault(); // the focus stays in the text
        const index = [...this.#names.children].indexOf(event.target.closest("li"));
        if (index >= 0) this.#take(this.#offered[index]);
    }

    #take({ name }) {
        const { value, selectionStart: end } = this.#text;
        const start = end - this.#asked().length;
        this.#text.setRangeText(`${name}${value[end] === " " ? "" : " "}`, start, end, "end");
        this.#close();
        this.#written();
    }

    #close() {
        this.#names.hidden = true;
        this.#text.removeAttribute("aria-activedescendant");
    }
}

/** Who of *people* is named with an "@"; the longer of two names that begin alike counts. */
export function mentionsIn(text, people) {
    const found = [];
    let rest = text;
    for (const { id, name } of [...people].sort((a, b) => b.name.length - a.name.length)) {
        const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
        const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])@${escaped}(?![\\p{L}\\p{N}_])`, "gu");
        if (!pattern.test(rest)) continue;
        found.push(id);
        rest = rest.replace(pattern, " ");
    }
    return found;
}
