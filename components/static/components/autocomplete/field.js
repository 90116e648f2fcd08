/*
 * <complete-field src="/api/books/guild%3A7" contacts="/api/contacts"><input …></complete-field>: an input that offers
 * names.
 *
 * It is the combobox "list autocomplete with manual selection" of the ARIA Authoring Practices: the focus stays in the
 * input, nothing is inserted that was not chosen, and typed text is sent unchanged. Without scripts it is a plain
 * input. What the <datalist> of the input lists is offered, too. A hidden input beside it gets the id of the chosen entry,
 * and is emptied when the text changes. With separator="," the text is a list, and the part at the caret is completed. A
 * choice fires the event "complete", and is reported to the book, unless the element is marked "unranked".
 */

import { gettext, interpolate, ngettext } from "../i18n.js";
import { Announcer } from "./announcer.js";
import { narrowed } from "./matching.js";
import { Options } from "./options.js";
import { Book, Contacts, Listed, Refused } from "./sources.js";

const DEBOUNCE = 150; // ms: longer than the pause between keys in fluent typing
const LIMIT = 10; // names
// A touch screen's keyboard composes words in every language, and shows its candidates outside of the page.
const TOUCH = matchMedia("(pointer: coarse)");
const AWAY = gettext("Names cannot be looked up now. You can type the whole name.");
const NOBODY = gettext("No names found.");
let count = 0;

class CompleteField extends HTMLElement {
    #input;
    #id; // the hidden input, if there is one
    #book;
    #contacts;
    #options;
    #announcer;
    #limit;
    #turn = 0; // the number of the latest request: answers to older ones are ignored
    #control = new AbortController();
    #timer = 0;
    #found = []; // the entries that the book returned for the text, or for a shorter one
    #taken = null; // the text that the last choice inserted

    connectedCallback() {
        if (this.#input) return; // the element was only moved
        this.#input = this.querySelector("input:not([type=hidden])");
        if (!this.#input) return;
        this.#id = this.querySelector("input[type=hidden]");
        // Remains of a live field that was copied, as when the admin's inlines copy their empty row.
        for (const node of this.querySelectorAll(".complete-popup, .complete-hidden")) node.remove();
        this.#limit = Number(this.getAttribute("limit")) || LIMIT;
        this.#book = this.hasAttribute("src") ? new Book(this.getAttribute("src"), this.#limit) : null;
        this.#contacts = this.hasAttribute("contacts") ? new Contacts(this.getAttribute("contacts")) : null;
        if (this.#input.list) this.#contacts = new Listed(this.#input);
        this.#announcer = new Announcer();
        this.#build();
        this.#listen();
    }

    disconnectedCallback() {
        this.#stop();
        this.#announcer?.hush();
    }

    #build() {
        const id = `complete-${(count += 1)}`;
        const name = this.#input.labels?.[0]?.textContent.trim() || this.#input.getAttribute("aria-label") || gettext("Names");
        this.#options = new Options(id, name, (entry) => this.#pick(entry));
        const attributes = {
            role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": this.#options.list.id,
            autocomplete: "off", autocapitalize: "none", spellcheck: "false",
        };
        for (const [key, value] of Object.entries(attributes)) this.#input.setAttribute(key, value);
        this.append(this.#options.node, ...this.#announcer.nodes);
        this.toggleAttribute("data-live", true);
    }

    #listen() {
        const input = this.#input;
        input.addEventListener("focus", () => this.#contacts?.load());
        input.addEventListener("click", () => !this.#piece().text && this.#look());
        input.addEventListener("keydown", (event) => this.#pressed(event));
        // Text that an input method is still composing is not a prefix yet.
        input.addEventListener("input", (event) => (event.isComposing && !TOUCH.matches) || this.#written());
        input.addEventListener("compositionend", () => this.#written());
        input.addEventListener("blur", () => this.#close());
    }

    /** The text to complete: all of it, or the part between separators at the caret. */
    #piece() {
        const { value } = this.#input;
        const separator = this.getAttribute("separator");
        if (!separator) return { start: 0, end: value.length, text: value.trim() };
        const caret = this.#input.selectionStart;
        const start = value.slice(0, caret).lastIndexOf(separator) + 1;
        const next = value.indexOf(separator, caret);
        const end = next < 0 ? value.length : next;
        return { start, end, text: value.slice(start, end).trim() };
    }

    #pressed(event) {
        if (event.isComposing || event.keyCode === 229) return; // a key for the input method
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        const isPlain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
        if (step && isPlain) this.#arrow(step, event.altKey);
        else if (event.key === "Enter" && this.#options.active) this.#pick(this.#options.active);
        else if (event.key === "Escape" && !this.#options.node.hidden) this.#close();
        else {
            if (event.key === "Escape") this.#stop(); // an answer under way must not open the list again
            if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) this.#activate(-1);
            return;
        }
        event.preventDefault();
        event.stopPropagation();
    }

    /** Alt and an arrow only open or close the list. */
    #arrow(step, isAlt) {
        if (isAlt && step < 0) return this.#close();
        if (this.#options.isOpen) {
            if (!isAlt) this.#options.move(step);
            return this.#expose();
        }
        return this.#look(isAlt ? 0 : step);
    }

    #activate(index) {
        this.#options.activate(index);
        this.#expose();
    }

    #written() {
        if (this.#input.value === this.#taken) return; // a choice ended the composition
        this.#taken = null;
        if (this.#id) this.#id.value = "";
        this.#activate(-1);
        this.#look();
    }

    /** Offer matching names: known ones at once, then names from the book. *step* moves into the list. */
    #look(step = 0) {
        if (this.#input.readOnly) return;
        this.#stop();
        const turn = this.#turn;
        const { text } = this.#piece();
        const known = text && this.#book ? this.#book.known(text) : [];
        // Until the book answers, keep offering the visible names that still match.
        this.#offer(text, known ?? narrowed(this.#found, text), known !== null);
        if (known === null) this.#timer = setTimeout(() => this.#ask(text, turn), DEBOUNCE);
        if (step && this.#options.isOpen) this.#options.move(step);
        this.#expose();
        if (this.#contacts && !this.#contacts.isReady) this.#lookAgain(turn, step);
    }

    async #lookAgain(turn, step) {
        await this.#contacts.load();
        if (turn === this.#turn) this.#look(this.#options.isOpen ? 0 : step);
    }

    async #ask(text, turn) {
        this.#control = new AbortController();
        try {
            const found = await this.#book.complete(text, this.#control.signal);
            if (turn === this.#turn) this.#offer(text, found, true);
        } catch (error) {
            if (turn === this.#turn) this.#failed(error, text, turn);
        }
    }

    #failed(error, text, turn) {
        if (error instanceof Refused && error.status === 429) {
            this.#timer = setTimeout(() => this.#ask(text, turn), 1000 * Math.max(1, error.retryAfter));
            return;
        }
        if (this.#options.isOpen) return; // contacts are shown already
        this.#tell(error instanceof Refused && error.status === 404 ? NOBODY : AWAY);
    }

    /** Offer contacts and *found* entries. *isAll* means that no more names will come for this text. */
    #offer(text, found, isAll) {
        this.#found = found;
        const contacts = this.#contacts?.complete(text) ?? [];
        const ids = new Set(contacts.map(({ id }) => id));
        const separator = this.getAttribute("separator");
        const isOne = ({ label }) => !separator || !label.includes(separator); // a label with the separator would be read as two names
        const others = found.filter(({ id }) => !ids.has(id));
        const entries = [...contacts, ...others].filter(isOne).slice(0, this.#limit);
        this.#options.show(entries, text);
        this.#expose();
        if (entries.length) {
            const said = ngettext(
                "%(count)s name. Up and down arrows choose, Enter takes.",
                "%(count)s names. Up and down arrows choose, Enter takes.",
                entries.length,
            );
            if (isAll) this.#announcer.say(interpolate(said, { count: entries.length }));
        } else if (isAll && text) this.#tell(NOBODY);
        else this.#announcer.hush();
    }

    #tell(text) {
        this.#options.tell(text);
        this.#announcer.say(text);
        this.#expose();
    }

    #pick(entry) {
        const { start, end } = this.#piece();
        const { value } = this.#input;
        const separator = this.getAttribute("separator");
        const lead = start ? " " : "";
        const put = separator ? `${lead}${entry.label}${separator} ` : entry.label;
        const rest = separator ? value.slice(end).replace(separator, "").trimStart() : "";
        this.#input.value = value.slice(0, start) + put + rest;
        this.#input.setSelectionRange(start + put.length, start + put.length);
        this.#taken = this.#input.value;
        if (this.#id && !separator) this.#id.value = entry.id;
        this.#close();
        const token = document.querySelector("input[name=csrfmiddlewaretoken]")?.value;
        if (this.#book && token && !this.hasAttribute("unranked")) this.#book.select(entry.id, token);
        this.#input.dispatchEvent(new Event("change", { bubbles: true }));
        this.dispatchEvent(new CustomEvent("complete", { bubbles: true, detail: { id: entry.id, label: entry.label } }));
    }

    #close() {
        this.#stop();
        this.#announcer.hush();
        this.#options.hide();
        this.#expose();
    }

    /** Ignore all answers that are under way. */
    #stop() {
        this.#turn += 1;
        clearTimeout(this.#timer);
        this.#control.abort();
    }

    /** Tell assistive technology what is visible. */
    #expose() {
        this.#input.setAttribute("aria-expanded", String(this.#options.isOpen));
        const active = this.#options.activeId;
        if (active) this.#input.setAttribute("aria-activedescendant", active);
        else this.#input.removeAttribute("aria-activedescendant");
    }
}

customElements.define("complete-field", CompleteField);
