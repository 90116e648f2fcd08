/* Buttons that copy the text beside them: <button data-copy>, within an element [data-copied] whose <code> it copies. */

import { gettext } from "./i18n.js";

async function copy(button) {
    const nodes = [...button.closest("[data-copied]").querySelectorAll("code")];
    try {
        await navigator.clipboard.writeText(nodes.map((node) => node.textContent).join(""));
        button.textContent = gettext("Copied");
    } catch {
        button.textContent = gettext("The browser does not allow copying"); // without HTTPS, or because it was refused
    }
}

document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
});
