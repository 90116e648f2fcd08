/*
 * "@" in a text area offers the names of members: arrow keys choose, Enter or Tab takes, Esc closes. The first name is
 * selected at once, since the list is shown only while a name is being written.
 *
 * For assistive technology the text area stays a text box, and the list to choose from is announced. A name that was
 * inserted is not searched again. A blank, or a mark after a letter, ends a search until the next letter: Enter after
 * "@jack?" sends.
 */

import { gettext, interpolate, ngettext } from "../i18n.js";
import { Announcer } from "../autocomplete/announcer.js";
import { Options } from "../autocomplete/options.js";
import { avatar, h } from "./dom.js";

// A touch screen's keyboard composes words in every language, and shows its candidates outside of the page.
const TOUCH = matchMedia("(pointer: coarse)");
const LONGEST = 50; // the most characters that are typed of a name
const ENDED = /^\s|\s$|[\p{L}\p{N}].*[^\p{L}\p{M}\p{N}_]$/u; // text that is no name, or after which none goes on
const ASKED = new RegExp(`(?<![\\p{L}\\p{N}_])@([^@\\n]{0,${LONGEST}})$`, "u");
// Where a name notifies nobody, as in texts.py: code, what follows a backslash, and addresses. Links have labels.
const SILENT = new RegExp(
    [
        String.raw`^\x60{3}(?!.*\x60{3}).*\n(?:.*\n)*?[^\S\n]*\x60{3}[^\S\n]*$`,
        String.raw`\\[\\\x60*_~\[\]>#@\-]`,
        "`[^`\\n]{1,500}`",
        String.raw`\[([^[\]\n]{1,200})\]\(https?://(?:[^\s()]|\([^\s()]*\))+\)`,
        String.raw`(?:(?<![a-z])https?://|(?<![\p{L}\p{N}_@./:\-])www\.[^\s/]+\.)[^\s<>"\x60\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]+`,
        String.raw`(?<![\p{L}\p{N}_@.\-])[\p{L}\p{N}_\-]+(?:\.[\p{L}\p{N}_\-]+)+/\S*`,
        String.raw`@[\p{L}\p{N}_.\-]+@[\p{L}\p{N}_\-]+\.[\p{L}\p{N}_]+`,
    ].join("|"),
    "gimu",
);

export class Mentions {
    node; // to be placed beside the text area
    #text;
    #find;
    #onput;
    #options = new Options("chat-names", gettext("Members"), (entry) => this.#take(entry));
    #announcer = new Announcer();
    #taken = { at: -1, put: "" }; // the last inserted name, and its place
    #turn = 0;

    /** *find(begun)* returns a promise of matching members, [{ id, name }]; *onput()* is called when a name was inserted. */
    constructor(text, find, onput) {
        this.#text = text;
        this.#find = find;
        this.#onput = onput;
        this.node = h("div", { class: "chat-mentions" }, this.#options.node, ...this.#announcer.nodes);
        const attributes = { "aria-autocomplete": "list", "aria-haspopup": "listbox", "aria-controls": this.#options.list.id };
        for (const [key, value] of Object.entries(attributes)) text.setAttribute(key, value);
        // Text that an input method is still composing is not a name yet.
        text.addEventListener("input", (event) => (event.isComposing && !TOUCH.matches) || this.#offer());
        text.addEventListener("compositionend", () => this.#offer());
        for (const event of ["blur", "click"]) text.addEventListener(event, () => this.close());
    }

    /** Handle a key; return whether it was for the list. */
    pressed(event) {
        if (!this.#options.isOpen || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return false;
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step) this.#move(step);
        else if (["Enter", "Tab"].includes(event.key)) this.#take(this.#options.active);
        else if (event.key === "Escape") this.close();
        else {
            if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) this.close(); // the caret leaves the name
            return false;
        }
        event.preventDefault();
        event.stopPropagation();
        return true;
    }

    close() {
        this.#turn += 1;
        this.#options.hide();
        this.#announcer.hush();
        this.#expose();
    }

    /** The place of the "@" before the caret, and the text after it; null if there is nothing to offer. */
    #asked() {
        const { value, selectionStart: end, selectionEnd } = this.#text;
        const found = end === selectionEnd && value.slice(0, end).match(ASKED);
        if (!found || ENDED.test(found[1])) return null;
        const isTaken = found.index === this.#taken.at && value.startsWith(this.#taken.put, found.index);
        return isTaken ? null : { at: found.index, begun: found[1] };
    }

    async #offer() {
        this.#turn += 1;
        const turn = this.#turn;
        const asked = this.#asked();
        if (!asked) return this.close();
        const people = await this.#find(asked.begun);
        if (turn !== this.#turn) return; // the user has gone on writing, or closed the list
        if (!people.length) return this.close();
        this.#options.show(people.map(({ id, name }) => ({ id, label: name })), asked.begun);
        [...this.#options.list.children].forEach((option, index) => option.prepend(avatar(people[index].name, people[index].id)));
        if (!this.#options.active) this.#options.activate(0);
        const count = interpolate(ngettext("%(count)s member.", "%(count)s members.", people.length), { count: people.length });
        this.#announcer.say(`${count} ${gettext("Up and down arrows choose, Enter or Tab takes, Escape closes.")}`);
        this.#expose();
    }

    #move(step) {
        this.#options.move(step);
        if (!this.#options.active) this.#options.move(step); // wrap around
        this.#expose();
    }

    #take({ label }) {
        const { at } = this.#asked();
        const { value, selectionStart: end } = this.#text;
        this.#taken = { at, put: `@${label}${value[end] === " " ? "" : " "}` };
        this.#text.setRangeText(this.#taken.put, at, end, "end");
        this.close();
        this.#onput();
    }

    #expose() {
        const id = this.#options.activeId;
        if (id) this.#text.setAttribute("aria-activedescendant", id);
        else this.#text.removeAttribute("aria-activedescendant");
    }
}

/** Return those of *people* who are mentioned with "@", and not in code or an address. Of two names that begin alike, the longer one counts. */
export function mentionsIn(text, people) {
    const said = text.replace(SILENT, (found, label) => (label ? ` ${label} ` : /^\\[^@]/.test(found) ? found[1] : " "));
    const longest = people.filter(({ name }) => name).sort((a, b) => b.name.length - a.name.length);
    const found = new Set();
    let end = 0;
    for (const { index } of said.matchAll(/(?<![\p{L}\p{N}]_*)@/gu)) {
        const rest = said.slice(index + 1);
        const named = index < end ? null : longest.find(({ name }) => rest.startsWith(name) && !/^_*[\p{L}\p{N}]/u.test(rest.slice(name.length)));
        if (!named) continue;
        found.add(named.id);
        end = index + 1 + named.name.length;
    }
    return [...found];
}
