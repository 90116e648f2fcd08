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
    #replyTo = null;
    #quote = h("div", { class: "chat-replying", hidden: true });

    /** *roster* knows who can be mentioned; *onsend(text, mentions, replyTo)* is called with the message to send. */
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
        this.node = h("form", { class: "chat-composer" }, this.#mentions.node, this.#quote, h("div", { class: "chat-field" }, this.#text, send));
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

    /** Make the next message a reply to *message*, whose sender has this name; to none for null. */
    replyTo(message, name) {
        this.#replyTo = message && { seq: message.seq, sender: message.sender, text: message.text };
        this.#quote.hidden = !message;
        if (message) {
            const cancel = h("button", { class: "chat-round", type: "button", "aria-label": "Do not reply", onclick: () => this.replyTo(null) }, icon("close"));
            this.#quote.replaceChildren(h("p", { class: "chat-quote" }, h("b", {}, `Reply to ${name}`), " ", message.text || "Picture"), cancel);
        }
        this.focus();
    }

    #send(onsend) {
        const text = this.#text.value.trim();
        if (!text) return;
        onsend(text, mentionsIn(text, this.#roster.known()), this.#replyTo);
        this.replyTo(null);
        this.#text.value = "";
        this.#mentions.close();
        this.#written();
        this.focus();
    }

    #pressed(event) {
        if (event.isComposing || event.keyCode === 229) return; // a key for the input method
        if (this.#mentions.pressed(event)) return;
        if (event.key === "Escape" && this.#replyTo) {
            event.preventDefault();
            this.replyTo(null);
        }
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
