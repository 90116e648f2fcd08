/*
 * The list below the field: options with their matches marked, at most one of them active. Names become text nodes,
 * never HTML. If the browser supports popovers, the list is above the page, so that no box around the field (such as a
 * row of a form in the admin) cuts it off.
 */

import { gettext } from "../i18n.js";
import { find } from "./matching.js";

const HIGHEST = 320; // px: as in autocomplete.css
const WIDEST = "30rem"; // as in autocomplete.css
const GAP = 4; // px between the list and the field
const CAN_LIE_ABOVE = "popover" in HTMLElement.prototype;

function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
}

function marked(label, prefix) {
    const found = find(label, prefix);
    if (!found) return [label];
    const nodes = [];
    let at = 0;
    for (const { start, end } of found.places) {
        nodes.push(label.slice(at, start), element("mark", {}, label.slice(start, end)));
        at = end;
    }
    return [...nodes, label.slice(at)];
}

export class Options {
    node;
    list;
    #note = element("p", { class: "complete-note", "aria-hidden": "true" }); // the announcer reads it out
    #id;
    #entries = [];
    #active = -1;
    #moves = new AbortController(); // removes the listeners that exist while the list is open

    /** *id* is the prefix of the options' ids; *onpick(entry)* is called when an option is clicked. */
    constructor(id, label, onpick) {
        this.#id = id;
        this.list = element("ul", { role: "listbox", id: `${id}-list`, "aria-label": label });
        this.node = element("div", { class: "complete-popup" }, this.list, this.#note);
        this.node.hidden = true;
        if (CAN_LIE_ABOVE) this.node.popover = "manual";
        // Keep the focus in the field, and the keyboard on a touch screen.
        this.node.addEventListener("mousedown", (event) => event.preventDefault());
        this.list.addEventListener("click", (event) => {
            const option = event.target.closest("[role=option]");
            if (option) onpick(this.#entries[[...this.list.children].indexOf(option)]);
        });
    }

    /** Whether options are visible. */
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

    /** Offer *entries*; the active one stays active if it is among them. */
    show(entries, prefix) {
        const was = this.active?.id;
        this.#entries = entries;
        this.#note.hidden = true;
        this.list.hidden = false;
        this.list.replaceChildren(...entries.map((entry, index) => this.#option(entry, index, prefix)));
        this.#appear(entries.length > 0);
        this.list.scrollTop = 0;
        this.activate(was === undefined ? -1 : entries.findIndex(({ id }) => id === was));
    }

    /** Show a sentence instead of options. */
    tell(text) {
        this.hide();
        this.list.hidden = true;
        this.#note.textContent = text;
        this.#note.hidden = false;
        this.#appear(true);
    }

    hide() {
        this.#appear(false);
        this.#entries = [];
        this.list.replaceChildren();
        this.#active = -1;
    }

    /** Make the next option active, or the previous one (*step* -1); after the last one, none is active, and then the first one. */
    move(step) {
        const places = this.#entries.length + 1; // "none active" is a place, too
        this.activate(((this.#active + 1 + step + places) % places) - 1);
    }

    activate(index) {
        this.#active = index;
        [...this.list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
        this.list.children[index]?.scrollIntoView({ block: "nearest" });
    }

    #option(entry, index, prefix) {
        const label = element("span", { class: "complete-label", dir: "auto" }, ...marked(entry.label, prefix));
        const hint = entry.isRecent ? [" ", element("span", { class: "complete-hint" }, gettext("recent"))] : [];
        return element("li", { role: "option", id: `${this.#id}-${index}`, "aria-selected": "false" }, label, ...hint);
    }

    #appear(isOpen) {
        const wasOpen = !this.node.hidden;
        this.node.hidden = !isOpen;
        if (CAN_LIE_ABOVE && this.node.isConnected) this.node.togglePopover(isOpen);
        if (wasOpen && !isOpen) this.#moves.abort();
        if (!isOpen) return;
        this.#place();
        if (wasOpen) return;
        this.#moves = new AbortController();
        const options = { capture: true, passive: true, signal: this.#moves.signal };
        for (const view of [window, visualViewport]) {
            for (const event of ["scroll", "resize"]) view.addEventListener(event, () => this.#place(), options);
        }
    }

    /** Place the list above the field if there is more visible room than below (on-screen keyboard, zoom). */
    #place() {
        const { node } = this;
        if (!node.isConnected) this.#moves.abort(); // the page removed the list while it was open
        if (!node.parentElement) return;
        const { top, bottom, left, right, width } = node.parentElement.getBoundingClientRect();
        const { clientHeight, clientWidth } = document.documentElement;
        const isFromRight = getComputedStyle(node.parentElement).direction === "rtl";
        const side = Math.max(0, isFromRight ? clientWidth - right : left);
        if (CAN_LIE_ABOVE) { // its height depends on its width
            node.style.minWidth = `${width}px`;
            node.style.maxWidth = `max(${width}px, min(${WIDEST}, ${clientWidth - side - 2 * GAP}px))`;
        }
        const { offsetTop, height } = visualViewport;
        const [above, below] = [top - offsetTop, offsetTop + height - bottom];
        const isAbove = below < Math.min(HIGHEST, node.offsetHeight) && above > below;
        node.toggleAttribute("data-above", isAbove);
        if (!CAN_LIE_ABOVE) return;
        const [high, low] = isAbove ? [null, clientHeight - top + GAP] : [bottom + GAP, null];
        const places = { top: high, bottom: low, left: isFromRight ? null : side, right: isFromRight ? side : null };
        for (const [edge, at] of Object.entries(places)) node.style[edge] = at === null ? "auto" : `${at}px`;
    }
}
