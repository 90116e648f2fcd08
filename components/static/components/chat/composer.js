/*
 * The text area for messages. Enter sends and Shift+Enter starts a line; on touch screens Enter starts a line. A draft
 * stays with its chat while another is open.
 */

import { h, icon } from "./dom.js";
import { Mentions, mentionsIn } from "./mentions.js";

const started = new Map(); // chat id -> its draft

export class Composer {
    node;
    #text;
    #mentions;
    #chat;
    #roster;

    /** *roster* knows who can be mentioned; *onsend(text, mentions)* is called with the message to send. */
    constructor(chat, title, roster, onsend) {
        this.#chat = chat;
        this.#roster = roster;
        this.#text = h("textarea", {
            name: "text", rows: 1, placeholder: "Message", "aria-label": `Message to ${title}`, enterkeyhint: "send",
            onkeydown: (event) => this.#pressed(event), oninput: () => this.#written(),
        });
        this.#text.value = started.get(chat) ?? "";
        this.#mentions = new Mentions(this.#text, (begun) => roster.find(begun), () => this.#written());
        const send = h("button", { class: "chat-round primary", type: "submit", "aria-label": "Send" }, icon("send"));
        this.node = h("form", { class: "chat-composer" }, this.#mentions.node, h("div", { class: "chat-field" }, this.#text, send));
        this.node.addEventListener("submit", (event) => {
            event.preventDefault();
            this.#send(onsend);
        });
    }

    focus() {
        this.#text.focus({ preventScroll: true });
    }

    get isEmpty() {
        return !this.#text.value;
    }

    /** Insert *text* before the draft. */
    put(text) {
        this.#text.value = [text, this.#text.value].filter(Boolean).join("\n");
        this.#written();
        this.focus();
    }

    #send(onsend) {
        const text = this.#text.value.trim();
        if (!text) return;
        onsend(text, mentionsIn(text, this.#roster.known()));
        this.#text.value = "";
        this.#mentions.close();
        this.#written();
        this.focus();
    }

    #pressed(event) {
        if (event.isComposing || event.keyCode === 229) return; // a key for the input method
        if (this.#mentions.pressed(event)) return;
        const isTouch = matchMedia("(pointer: coarse)").matches;
        if (event.key === "Enter" && !event.shiftKey && !isTouch) {
            event.preventDefault();
            this.node.requestSubmit();
        }
    }

    #written() {
        if (this.#text.value) started.set(this.#chat, this.#text.value);
        else started.delete(this.#chat);
        if (!CSS.supports("field-sizing: content")) {
            this.#text.style.height = "auto";
            this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
        }
    }
}
