/*
 * The text area for messages. Enter sends and Shift+Enter starts a line; on touch screens Enter starts a line. A draft
 * stays with its chat while another is open.
 */

import { gettext, interpolate } from "../i18n.js";
import { h, icon, plain } from "./dom.js";
import { Mentions, mentionsIn } from "./mentions.js";

const started = new Map(); // chat id -> its draft

export class Composer {
    node;
    #text;
    #mentions;
    #chat;
    #roster;
    #replyTo = null;
    #edited = null; // the message that is in the field
    #hooks;
    #quote = h("div", { class: "chat-replying", hidden: true });

    /**
     * *roster* knows who can be mentioned. *hooks*: { onsend(text, mentions, replyTo), onedit(seq, text, mentions), which
     * returns whether it was done, lastOwn(), the message that the arrow up edits, ontype(), while a message is written }
     */
    constructor(chat, title, roster, hooks) {
        this.#hooks = hooks;
        this.#chat = chat;
        this.#roster = roster;
        this.#text = h("textarea", {
            name: "text", rows: 1, placeholder: gettext("Message"), "aria-label": interpolate(gettext("Message to %(title)s"), { title }), enterkeyhint: "send",
            onkeydown: (event) => this.#pressed(event), oninput: () => this.#typed(),
        });
        this.#text.value = started.get(chat) ?? "";
        this.#mentions = new Mentions(this.#text, (begun) => roster.find(begun), () => this.#written());
        const send = h("button", { class: "chat-round primary", type: "submit", "aria-label": gettext("Send") }, icon("send"));
        this.node = h("form", { class: "chat-composer" }, this.#mentions.node, this.#quote, h("div", { class: "chat-field" }, this.#text, send));
        this.node.addEventListener("submit", (event) => {
            event.preventDefault();
            this.#send();
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
        if (this.#edited) this.edit(null);
        this.#replyTo = message && { seq: message.seq, sender: message.sender, text: message.text };
        this.#quote.hidden = !message;
        if (message) {
            this.#above([h("b", {}, interpolate(gettext("Reply to %(name)s"), { name })), " ", (message.rich ? plain(message.rich) : message.text) || gettext("Picture")], gettext("Do not reply"), () => this.replyTo(null));
        }
        this.focus();
    }

    /** Put *message* into the field, to be changed; for null, put the draft back. */
    edit(message) {
        this.#replyTo = null;
        this.#edited = message;
        this.#quote.hidden = !message;
        this.#text.value = message?.text ?? started.get(this.#chat) ?? "";
        if (message) this.#above([h("b", {}, gettext("Edit your message"))], gettext("Do not edit"), () => this.edit(null));
        this.#written();
        this.focus();
    }

    /** What the field is for, above it, and a button that undoes this. */
    #above(parts, label, undo) {
        const cancel = h("button", { class: "chat-round", type: "button", "aria-label": label, onclick: undo }, icon("close"));
        this.#quote.replaceChildren(h("p", { class: "chat-quote" }, ...parts), cancel);
    }

    async #save(text) {
        const edited = this.#edited;
        const isDone = text === edited.text || (await this.#hooks.onedit(edited.seq, text, mentionsIn(text, this.#roster.known())));
        if (isDone && this.#edited === edited) this.edit(null);
    }

    #send() {
        const text = this.#text.value.trim();
        if (!text) return;
        if (this.#edited) return this.#save(text);
        this.#hooks.onsend(text, mentionsIn(text, this.#roster.known()), this.#replyTo);
        this.replyTo(null);
        this.#text.value = "";
        this.#mentions.close();
        this.#written();
        this.focus();
    }

    #pressed(event) {
        if (event.isComposing || event.keyCode === 229) return; // a key for the input method
        if (this.#mentions.pressed(event)) return;
        if (event.key === "Escape" && (this.#replyTo || this.#edited)) {
            event.preventDefault();
            if (this.#edited) this.edit(null);
            else this.replyTo(null);
        }
        const last = event.key === "ArrowUp" && this.isEmpty && this.#hooks.lastOwn();
        if (last) {
            event.preventDefault();
            this.edit(last);
        }
        const isTouch = matchMedia("(pointer: coarse)").matches;
        if (event.key === "Enter" && !event.shiftKey && !isTouch) {
            event.preventDefault();
            this.node.requestSubmit();
        }
    }

    #typed() {
        this.#written();
        if (!this.#edited && !this.isEmpty) this.#hooks.ontype();
    }

    #written() {
        if (!this.#edited) started.set(this.#chat, this.#text.value); // the draft waits while a message is edited
        if (!CSS.supports("field-sizing: content")) {
            this.#text.style.height = "auto";
            this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
        }
    }
}
