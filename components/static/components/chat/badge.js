/*
 * Keep the badge of {% chat_badge %} up to date: load it again now and then while the page is visible. The chat page has
 * live news of its own, and changes the badge itself.
 */

const PAUSE = 20_000; // ms
const badges = () => document.querySelectorAll(".components-chat-badge[data-url]");
let timer = 0;
let isAsking = false;

async function renew() {
    clearTimeout(timer);
    const [first] = badges();
    if (!first || isAsking || document.visibilityState !== "visible" || document.getElementById("chat")) return;
    isAsking = true;
    const fresh = await load(first.dataset.url).catch(() => first); // without the network, the badge stays as it was
    isAsking = false;
    for (const badge of badges()) {
        if (!fresh) badge.remove(); // the visitor has logged out
        else if (badge.innerHTML !== fresh.innerHTML) badge.replaceWith(fresh.cloneNode(true));
    }
    timer = setTimeout(renew, PAUSE);
}

/** The badge as the server shows it now; null for visitors who are not logged in. */
async function load(url) {
    const answer = await fetch(url, { cache: "no-store", credentials: "same-origin" });
    if (!answer.ok) throw new Error(`Status ${answer.status}`);
    return new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".components-chat-badge");
}

document.addEventListener("visibilitychange", renew);
window.addEventListener("pageshow", ({ persisted }) => persisted && renew()); // the back button shows an old page
timer = setTimeout(renew, PAUSE);
