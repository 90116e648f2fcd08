/*
 * The list below the field: options with the match marked, of which one may be the active one. What people are called
 * becomes text nodes, never HTML.
 */

import { find } from "./matching.js";

const HIGHEST = 320; // px: as in autocomplete.css

function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
}

function marked(label, prefix) {
    const found = find(label, prefix);
    if (!found) return [label];
    const mark = element("mark", {}, label.slice(found.start, found.end));
    return [label.slice(0, found.start), mark, label.slice(found.end)];
}

export class Options {
    node;
    list;
    #note = element("p", { class: "complete-note", "aria-hidden": "true" }); // said by the announcer
    #id;
    #entries = [];
    #active = -1;

    /** *id* begins the ids of the options; *onpick(entry)* is called for one that is pointed at. */
    constructor(id, label, onpick) {
        this.#id = id;
        this.list = element("ul", { role: "listbox", id: `${id}-list`, "aria-label": label });
        this.node = element("div", { class: "complete-popup" }, this.list, this.#note);
        this.node.hidden = true;
        // The field keeps the focus, and a touch screen its keyboard.
        this.node.addEventListener("mousedown", (event) => event.preventDefault());
        this.list.addEventListener("click", (event) => {
            const option = event.target.closest("[role=option]");
            if (option) onpick(this.#entries[[...this.list.children].indexOf(option)]);
        });
    }

    /** Whether there are options in sight. */
    get isOpen() {
        return !this.node.hidden && this.#entries.length > 0;
    }

    get active() {
        return this.#entries[this.#active] ?? null;
    }

    /** The id of the active option's node, or null. */
    get activeId() {
        return this.active && `${this.#id}-${this.#active}`;
    }

    /** Offer *entries*; the one that was active stays so if it is among them. */
    show(entries, prefix) {
        const was = this.active?.id;
        this.#entries = entries;
        this.#note.hidden = true;
        this.list.hidden = false;
        this.list.replaceChildren(...entries.map((entry, index) => this.#option(entry, index, prefix)));
        this.node.hidden = !entries.length;
        this.list.scrollTop = 0;
        this.#place();
        this.activate(was === undefined ? -1 : entries.findIndex(({ id }) => id === was));
    }

    /** Show a sentence in place of options. */
    tell(text) {
        this.hide();
        this.list.hidden = true;
        this.#note.textContent = text;
        this.#note.hidden = false;
        this.node.hidden = false;
        this.#place();
    }

    hide() {
        this.node.hidden = true;
        this.#entries = [];
        this.list.replaceChildren();
        this.#active = -1;
    }

    /** Make the next option active, or the one before (*step* -1); after the last one, none is, and then the first. */
    move(step) {
        const places = this.#entries.length + 1; // none is a place, too
        this.activate(((this.#active + 1 + step + places) % places) - 1);
    }

    activate(index) {
        this.#active = index;
        [...this.list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
        this.list.children[index]?.scrollIntoView({ block: "nearest" });
    }

    #option(entry, index, prefix) {
        const label = element("span", { class: "complete-label", dir: "auto" }, ...marked(entry.label, prefix));
        const hint = entry.isRecent ? [" ", element("span", { class: "complete-hint" }, "recent")] : [];
        return element("li", { role: "option", id: `${this.#id}-${index}`, "aria-selected": "false" }, label, ...hint);
    }

    /** Above the field, where more room is than below: of what is in sight beside an on-screen keyboard, and enlarged. */
    #place() {
        const { top, bottom } = this.node.parentElement.getBoundingClientRect();
        const { offsetTop, height } = visualViewport;
        const [above, below] = [top - offsetTop, offsetTop + height - bottom];
        this.node.toggleAttribute("data-above", below < Math.min(HIGHEST, this.node.offsetHeight) && above > below);
    }
}
