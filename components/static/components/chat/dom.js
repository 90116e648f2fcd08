/*
 * Build the page. Texts of users become text nodes, never HTML; only http and https addresses that the browser's own
 * URL parser accepts become links.
 */

import { gettext, LANGUAGE } from "../i18n.js";

const TONES = 8;

/** An element: h("p", { class: "x", onclick: f }, "text", child). Strings become text nodes; null and false are left out. */
export function h(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
        else if (value === true) node.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return node;
}

const SVG = "http://www.w3.org/2000/svg";

/** An icon. Icons are part of the page, so that they are visible without a network. */
export function icon(name) {
    const svg = document.createElementNS(SVG, "svg");
    for (const [key, value] of Object.entries({ class: "chat-icon", "aria-hidden": "true", width: 20, height: 20 })) {
        svg.setAttribute(key, value);
    }
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", `#chat-icon-${name}`);
    svg.append(use);
    return svg;
}

/** A round picture with initials, in the same colour as on pages of the server. */
export function avatar(name, id) {
    return h("span", { class: `chat-avatar tone-${tone(id)}`, "aria-hidden": "true" }, initials(name));
}

function tone(id) {
    let sum = 0;
    for (const character of id) sum = (sum * 31 + character.codePointAt(0)) % 65_521;
    return sum % TONES;
}

function initials(name) {
    const words = name.split(/[\s,]+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
    const letters = words.slice(0, 2).map((word) => [...word].find((c) => /[\p{L}\p{N}]/u.test(c)));
    return letters.join("").toUpperCase() || "#";
}

/** The address in *text*, or null if it is not one of http or https. */
export function httpAddress(text) {
    try {
        const url = new URL(text);
        return ["http:", "https:"].includes(url.protocol) ? url.href : null;
    } catch {
        return null; // not an address: it stays text
    }
}

export function link(address, text) {
    return h("a", { href: address, rel: "noopener noreferrer nofollow ugc", target: "_blank" }, text);
}

/** The text of a tree, without its marks. */
export function plain(tree) {
    return tree.map((node) => (typeof node === "string" ? node : plain(node.slice(node[0] === "a" ? 2 : 1)))).join("");
}

const TAGS = new Set(["blockquote", "code", "del", "em", "li", "ol", "pre", "strong", "ul"]);
const RAW = new Set(["code", "pre"]); // nobody is mentioned in code

/**
 * The tree of a message, which the server has made of its text, as nodes, with the "@name" of each of *mentioned*
 * ([{name, isMe}]) marked. Unknown tags stay text.
 */
export function built(tree, mentioned) {
    return tree.flatMap((node) => {
        if (typeof node === "string") return marked(node, mentioned);
        const [tag, ...children] = node;
        if (tag === "a") {
            const address = httpAddress(children[0]);
            return address ? link(address, children.slice(1).join("")) : built(children.slice(1), mentioned);
        }
        const inner = built(children, RAW.has(tag) ? [] : mentioned);
        return TAGS.has(tag) ? h(tag, {}, ...inner) : inner;
    });
}

function marked(text, mentioned) {
    const nodes = [];
    let rest = text;
    while (rest) {
        const hits = mentioned.map((who) => ({ ...who, at: rest.indexOf(`@${who.name}`) })).filter((hit) => hit.at >= 0);
        if (!hits.length) return [...nodes, rest];
        const hit = hits.reduce((a, b) => (b.at < a.at || (b.at === a.at && b.name.length > a.name.length) ? b : a));
        const end = hit.at + hit.name.length + 1;
        if (hit.at) nodes.push(rest.slice(0, hit.at));
        nodes.push(h("mark", { class: hit.isMe ? "me" : null }, rest.slice(hit.at, end)));
        rest = rest.slice(end);
    }
    return nodes;
}

/**
 * Make the children of *container* match *rows*: [{ key, state, build(), update(node)? }].
 * A node whose key stays is kept, so that it keeps the focus and is not read out again.
 */
export function reconcile(container, rows) {
    const focused = container.contains(document.activeElement) && document.activeElement;
    const wanted = new Set(rows.map((row) => row.key));
    const kept = new Map();
    for (const node of [...container.children]) {
        if (wanted.has(node.dataset.key)) kept.set(node.dataset.key, node);
        else node.remove();
    }
    let place = container.firstChild;
    for (const row of rows) {
        const old = kept.get(row.key);
        const node = renewed(old, row);
        if (old && old === place) place = node.nextSibling; // the new node stands where the old one did
        else container.insertBefore(node, place);
    }
    // Moving a node takes the focus away.
    if (focused && focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

function renewed(node, row) {
    if (node && node.dataset.state === row.state) return node;
    let fresh = node;
    if (node && row.update) row.update(node);
    else {
        fresh = row.build();
        node?.replaceWith(fresh);
    }
    fresh.dataset.key = row.key;
    fresh.dataset.state = row.state;
    return fresh;
}

const TIME = new Intl.DateTimeFormat(LANGUAGE, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(LANGUAGE, { weekday: "long", day: "numeric", month: "long" });
const DATE = new Intl.DateTimeFormat(LANGUAGE, { day: "numeric", month: "short" });

export const instantOf = (instant) => new Date(instant).toLocaleString(LANGUAGE);
export const timeOf = (instant) => TIME.format(new Date(instant));
export const dayKey = (instant) => new Date(instant).toDateString();

export function dayOf(instant) {
    const today = new Date();
    const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
    if (dayKey(instant) === today.toDateString()) return gettext("Today");
    if (dayKey(instant) === yesterday.toDateString()) return gettext("Yesterday");
    return DAY.format(new Date(instant));
}

/** An instant for the list: the time if it is today, otherwise the date. */
export const shortly = (instant) => (dayKey(instant) === new Date().toDateString() ? timeOf(instant) : DATE.format(new Date(instant)));
