/*
 * Announcements for users who do not see the list. Two live regions take turns, so that the same sentence is read again
 * when it is true again. Announcements wait for a pause in typing, so that the echo of keys does not cut them off.
 */

const PAUSE = 1_000; // ms

export class Announcer {
    nodes;
    #turn = 0;
    #timer = 0;

    constructor() {
        this.nodes = [0, 1].map(() => {
            const region = document.createElement("div");
            region.className = "complete-hidden";
            region.setAttribute("role", "status");
            region.setAttribute("aria-live", "polite");
            region.setAttribute("aria-atomic", "true");
            return region;
        });
    }

    /** Announce *text* soon, instead of a text that is still waiting. */
    say(text) {
        this.hush();
        this.#timer = setTimeout(() => {
            this.nodes[this.#turn].textContent = "";
            this.#turn = 1 - this.#turn;
            this.nodes[this.#turn].textContent = text;
        }, PAUSE);
    }

    hush() {
        clearTimeout(this.#timer);
    }
}
