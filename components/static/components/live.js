/*
 * Live refresh: fetches the page again and again, and updates the part that is marked [data-live].
 *
 * Nodes that stay are kept, not replaced, so focus, scrolling, open <details> and a selection survive. The visitor
 * chooses the interval, and the choice is remembered; 0 is off. A hidden tab sends no requests; requests never
 * overlap. Status 503 means that Redis is away: the old figures stay, and attempts go on. After other failures, they
 * stop.
 */

import { gettext, interpolate } from "./i18n.js";

const PATIENCE = 10_000; // ms until a request is given up
const WHILE_AWAY = 10_000; // ms between attempts while Redis is away
const SLOWEST = 60_000; // ms between attempts after failures
const MAX_FAILURES = 6;
const MEMORY = "components.live";

const part = document.querySelector("[data-live]");
const control = document.querySelector("[data-live-control]");
const choice = control.querySelector("select");
const status = control.querySelector("[role=status]");
let timer;
let failures = 0;
let busy = false;
let updated = "";

const key = (node) => node.dataset?.key;
const say = (text) => { status.textContent = text; };

/** Make *old* equal to *fresh*. Children correspond if they have the same data-key, or none and the same name. */
function renew(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
        if (old.data !== fresh.data) old.data = fresh.data;
        return;
    }
    if (old.nodeName === "DETAILS") fresh.open = old.open;
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    let place = old.firstChild;
    for (const node of [...fresh.childNodes]) {
        const twin = find(node, place);
        if (twin) {
            removeBetween(place, twin);
            renew(twin, node);
            place = twin.nextSibling;
        } else old.insertBefore(node, place);
    }
    removeBetween(place, null);
}

function find(node, place) {
    if (node.nodeType !== Node.ELEMENT_NODE) return place?.nodeName === node.nodeName ? place : null;
    while (place && (place.nodeName !== node.nodeName || key(place) !== key(node))) place = place.nextSibling;
    return place;
}

function removeBetween(node, end) {
    while (node !== end) {
        const next = node.nextSibling;
        node.remove();
        node = next;
    }
}

function show(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").querySelector("[data-live]");
    if (!fresh) throw new Error("The answer has no [data-live] part.");
    if (part.querySelector("[data-live-unavailable]")) return location.replace(location.pathname + location.search);
    const focused = part.contains(document.activeElement) && document.activeElement;
    renew(part, fresh);
    if (focused && focused !== document.activeElement) (focused.isConnected ? focused : part).focus({ preventScroll: true });
    updated = new Date().toTimeString().slice(0, 8);
    return say(interpolate(gettext("Updated %(time)s"), { time: updated }));
}

/** Fetch once; return the minimum of milliseconds until the next time, or null to stop. */
async function refresh() {
    const options = { headers: { "X-Live": "1" }, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
    const answer = await fetch(location.pathname + location.search, options);
    if (answer.status === 503) {
        const text = updated
            ? gettext("Redis does not answer; the figures are those of %(time)s. Trying again.")
            : gettext("Redis does not answer. Trying again.");
        say(interpolate(text, { time: updated }));
        return WHILE_AWAY;
    }
    if (answer.redirected || [403, 404].includes(answer.status)) {
        say(gettext("Refresh has stopped: this page is no longer available. Reload it to see why."));
        return null;
    }
    if (!answer.ok) throw new Error(answer.statusText);
    show(await answer.text());
    failures = 0;
    return 0;
}

function failed() {
    failures += 1;
    const goesOn = failures < MAX_FAILURES;
    say(goesOn ? gettext("The server does not answer. Trying again.") : gettext("Refresh has stopped: the server does not answer."));
    return goesOn ? Math.min(1000 * 2 ** failures, SLOWEST) : null;
}

async function run() {
    clearTimeout(timer);
    if (busy || document.hidden || choice.value === "0") return;
    busy = true;
    const least = await refresh().catch(failed);
    busy = false;
    if (least !== null) schedule(least);
}

function schedule(least) {
    clearTimeout(timer);
    if (choice.value !== "0") timer = setTimeout(run, Math.max(Number(choice.value) * 1000, least));
}

function remember(value) {
    try {
        if (value !== undefined) localStorage.setItem(MEMORY, value);
        return localStorage.getItem(MEMORY);
    } catch {
        return null; // storage is forbidden, so the choice holds for this page only
    }
}

function choose() {
    remember(choice.value);
    failures = 0;
    say(choice.value === "0" ? gettext("Refresh is off.") : "");
    schedule(0);
}

const remembered = remember();
if ([...choice.options].some((option) => option.value === remembered)) choice.value = remembered;
choice.addEventListener("change", choose);
document.addEventListener("visibilitychange", run);
control.hidden = false;
schedule(0);
