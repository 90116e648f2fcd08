/*
 * Keeps the number of remaining pieces up to date, as often as the cached rows are loaded, while the page is visible.
 * Without scripts the page shows the number as of its loading.
 *
 * Most answers are "304 Not Modified", which the browser handles by itself. Changes are announced to screen readers at
 * most every five seconds. A number that can no longer be updated is removed.
 */

const PATIENCE = 5000; // ms for which a number is shown without an answer
const QUIET = 5000; // ms between two announcements

const sale = document.querySelector("[data-flash]");
const cards = [...sale.querySelectorAll("[data-key]")];
const address = `${sale.dataset.source}?${cards.map((card) => `pk=${encodeURIComponent(card.dataset.key)}`).join("&")}`;
const every = Number(sale.dataset.every) * 1000;
const sentences = new Map();
let answeredAt = performance.now();
let saidAt = -Infinity;
let isAsking = false; // one request at a time, so that an older answer never follows a newer one
let timer = null;

async function look() {
  if (isAsking) return;
  isAsking = true;
  clearTimeout(timer);
  try {
    const answer = await fetch(address, { cache: "no-cache", signal: AbortSignal.timeout(PATIENCE) });
    if (!answer.ok) throw new Error(`${address} answered ${answer.status}`);
    const { rows } = await answer.json();
    const now = new Date(answer.headers.get("Date")); // the server's clock, not the clock of this machine
    for (const card of cards) if (rows[card.dataset.key]) show(card, rows[card.dataset.key], now);
    answeredAt = performance.now();
  } catch {
    // There was no answer, or an unreadable one. If that goes on, `late` shows it.
  }
  isAsking = false;
  late(performance.now() - answeredAt > PATIENCE);
  say();
  if (!document.hidden) timer = setTimeout(look, every);
}

function show(card, row, now) {
  const number = card.querySelector("[data-remaining]");
  const isOver = new Date(row.ends_at) <= now;
  if (number.dataset.remaining !== String(row.remaining)) {
    const name = card.querySelector("[data-name]").textContent;
    sentences.set(card, `${name}: ${row.remaining ? `${row.remaining} left` : "sold out"}.`);
  }
  number.textContent = number.dataset.remaining = row.remaining;
  const gone = card.querySelector("[data-gone]");
  if (!gone) return; // bought
  gone.textContent = isOver ? "Over" : "Sold out";
  const open = card.querySelector("[data-open]");
  const hadFocus = open.contains(document.activeElement);
  open.hidden = isOver || !row.remaining;
  gone.hidden = !open.hidden;
  if (open.hidden && hadFocus) gone.focus();
}

function say() {
  if (!sentences.size || performance.now() - saidAt < QUIET) return;
  sale.querySelector("[data-news]").textContent = [...sentences.values()].join(" ");
  sentences.clear();
  saidAt = performance.now();
}

function late(is) {
  sale.querySelector("[data-late]").hidden = !is;
  if (is) forget();
}

function forget() {
  for (const number of sale.querySelectorAll("[data-remaining]")) number.textContent = "?";
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  if (performance.now() - answeredAt > PATIENCE) forget();
  look();
});
timer = setTimeout(look, every);
