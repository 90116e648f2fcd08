/*
 * Find: Ctrl-K, or the link "Find…", opens a dialog with a combobox. What is typed is searched on the server, and the
 * options are what it has found; Enter opens the chosen one. Without scripts the link leads to a page that does the
 * same.
 */

const PAUSE = 150; // ms after a key until the server is asked

const link = document.querySelector("[data-finder]");
const dialog = document.querySelector("[data-finder-dialog]");
const form = dialog.querySelector("form");
const input = form.querySelector("input");
const list = form.querySelector("[role=listbox]");
const status = form.querySelector("[role=status]");
let timer;
let asking = new AbortController();
let chosen = -1;

function open() {
    if (dialog.open) return input.select();
    dialog.showModal();
    input.select();
    return ask();
}

/** Ask the server for what the text finds; the answer to an earlier text comes too late then. */
async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const query = new URLSearchParams({ q: input.value });
    try {
        const answer = await fetch(`${form.action}?${query}`, { headers: { Accept: "application/json" }, signal });
        if (!answer.ok || answer.redirected) return form.submit(); // the page says what is wrong
        const { hits, said } = await answer.json();
        return show(hits, said);
    } catch (error) {
        if (!signal.aborted) throw error;
    }
}

function show(hits, said) {
    list.replaceChildren(...hits.map(option));
    input.setAttribute("aria-expanded", String(hits.length > 0));
    status.textContent = said;
    choose(hits.length ? 0 : -1);
}

function option({ kind, name, url }, number) {
    const item = document.createElement("li");
    const [of, is] = [document.createElement("span"), document.createElement("span")];
    of.textContent = kind;
    of.className = "kind";
    is.textContent = name;
    item.append(is, " ", of);
    item.id = `finder-option-${number}`;
    item.setAttribute("role", "option");
    item.dataset.url = url;
    return item;
}

function choose(number) {
    chosen = number;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    const item = list.children[chosen];
    if (item) {
        input.setAttribute("aria-activedescendant", item.id);
        item.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
}

const step = (by) => list.children.length && choose((chosen + by + list.children.length) % list.children.length);

document.addEventListener("keydown", (event) => {
    const isMeant = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    if (!isMeant || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    open();
});

link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab or window
    event.preventDefault();
    open();
});

input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
});

input.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || event.isComposing) return;
    event.preventDefault();
    step(by);
});

form.addEventListener("submit", (event) => {
    const item = list.children[chosen];
    if (!item) return; // the page of the search says that there is nothing
    event.preventDefault();
    location.assign(item.dataset.url);
});

list.addEventListener("click", (event) => {
    const item = event.target.closest("[role=option]");
    if (item) location.assign(item.dataset.url);
});

form.querySelector("[data-finder-close]").addEventListener("click", () => dialog.close());
dialog.addEventListener("close", () => link.focus());
