/*
 * What is said to those who do not see the list. Two live regions take turns, so that the same sentence is read again
 * when it is true again; and it is said only after typing has paused, so that it is not cut off by the echo of keys.
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

    /** Say *text* in a while, instead of what has not been said yet. */
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
