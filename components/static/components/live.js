/*
 * Live refresh: asks for the page again and again, and updates the part that is marked [data-live].
 *
 * Nodes that stay are kept, not replaced, so focus, scrolling, open <details> and a selection survive. The visitor
 * chooses the interval, and the choice is remembered; 0 is off. A hidden tab sends no requests; requests never
 * overlap.
 *
 * What has come is kept in pieces with digests. A request names the digests, and the answer has only what is new, as
 * JSON. A page that knows nothing of this answers with HTML.
 *
 * Status 503 means that Redis is away: the old figures stay, are marked as old, and attempts go on. After other
 * failures, they stop.
 */

import { gettext, interpolate } from "./i18n.js";

const PATIENCE = 10_000; // ms until a request is given up
const WHILE_AWAY = 10_000; // ms between attempts while Redis is away
const SLOWEST = 60_000; // ms between attempts after failures
const MAX_FAILURES = 6;
const MEMORY = "components.live";
const CHOSEN = "another interval was chosen";

const part = document.querySelector("[data-live]");
const control = document.querySelector("[data-live-control]");
const choice = control.querySelector("select");
const status = control.querySelector("[role=status]");
let zone = control.dataset.liveZone; // of all times on the page
const clock = (timeZone) => new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", timeZone });
const timeOfDay = () => {
    try {
        return clock(zone).format();
    } catch {
        zone = ""; // one that browsers do not know, such as "+0100"
        return clock().format();
    }
};
let timer;
let failures = 0;
let busy = false;
let updated = timeOfDay();
let awaySince = "";
let etag = "";
let pieces = []; // [digest, html], in order
let under; // the controller that ends the request under way

const key = (node) => node.dataset?.key;
const say = (text) => { status.textContent = text; };

/** Make *old* equal to *fresh*. Children correspond if they have the same data-key, or none and the same name. */
function renew(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
        if (old.data !== fresh.data) old.data = fresh.data;
        return;
    }
    if (old.localName === "complete-field") return; // its script has changed it
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
    const page = new DOMParser().parseFromString(html, "text/html");
    const fresh = page.querySelector("[data-live]");
    if (!fresh) throw new Error("The answer has no [data-live] part.");
    if (part.querySelector("[data-live-unavailable]")) return location.replace(location.pathname + location.search);
    const focused = part.contains(document.activeElement) && document.activeElement;
    renew(part, fresh);
    const [links, freshLinks] = [document, page].map((each) => each.querySelector("[data-live-navigation]"));
    if (links && freshLinks) renew(links, freshLinks);
    if (focused && focused !== document.activeElement) (focused.isConnected ? focused : part).focus({ preventScroll: true });
    return current();
}

/** Make the page what *pairs* say: [index, number] for pieces that are here already, or [digest, html]. */
function assemble(pairs) {
    etag = "";
    pieces = pairs.flatMap((pair) => (typeof pair[0] === "number" ? pieces.slice(pair[0], pair[0] + pair[1]) : [pair]));
    show(pieces.map(([_digest, html]) => html).join(""));
}

function current() {
    failures = 0;
    awaySince = "";
    part.removeAttribute("data-live-old");
    control.removeAttribute("data-live-old");
    updated = timeOfDay();
    return say(interpolate(gettext("Updated %(time)s"), { time: `${updated} ${zone}`.trim() }));
}

/** Mark the figures as old, and say since when. */
function away() {
    if (part.querySelector("[data-live-unavailable]")) return say(gettext("Redis does not answer. Trying again."));
    awaySince ||= timeOfDay();
    part.setAttribute("data-live-old", "");
    control.setAttribute("data-live-old", "");
    const text = gettext("Redis has not answered since %(since)s; the figures are those of %(time)s. Trying again.");
    return say(interpolate(text, { since: awaySince, time: updated }));
}

function gone() {
    say(gettext("Refresh has stopped: this page is no longer available. Reload it to see why."));
    return null;
}

/** Ask once; return the minimum of milliseconds until the next time, or null to stop. */
async function refresh() {
    under = new AbortController();
    const { signal } = under;
    const patience = setTimeout(() => under.abort(), PATIENCE);
    const headers = {
        Accept: "application/json",
        "X-Live": choice.value,
        "X-Live-Parts": pieces.map(([digest]) => digest).join(" ") || "-",
        ...(etag && { "If-None-Match": etag }),
    };
    try {
        const answer = await fetch(location.pathname + location.search, { headers, cache: "no-store", signal });
        if (answer.status === 503) return away(), WHILE_AWAY;
        if (answer.redirected || [403, 404].includes(answer.status)) return gone();
        if (answer.status === 304) return current(), 0;
        if (!answer.ok) throw new Error(answer.statusText);
        if (answer.headers.get("Content-Type")?.startsWith("application/json")) {
            assemble(await answer.json());
            etag = answer.headers.get("ETag") ?? "";
        } else show(await answer.text());
        return 0;
    } catch (error) {
        if (signal.reason === CHOSEN) return 0;
        throw error;
    } finally {
        clearTimeout(patience);
    }
}

function failed() {
    failures += 1;
    const goesOn = failures < MAX_FAILURES;
    say(goesOn ? gettext("The server does not answer. Trying again.") : gettext("Refresh has stopped: the server does not answer."));
    return goesOn ? Math.min(1000 * 2 ** failures, SLOWEST) : null;
}

async function run() {
    clearTimeout(timer);
    if (document.hidden || busy || choice.value === "0") return;
    busy = true;
    const least = await refresh().catch(failed);
    busy = false;
    if (least !== null && !document.hidden) schedule(least);
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
    if (busy) under.abort(CHOSEN);
    schedule(0);
}

const remembered = remember();
if ([...choice.options].some((option) => option.value === remembered)) choice.value = remembered;
choice.addEventListener("change", choose);
document.addEventListener("visibilitychange", run);
control.hidden = false;
schedule(0);
