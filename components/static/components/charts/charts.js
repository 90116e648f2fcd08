/*
 * Charts: show the counts under the pointer, and zoom into a time by dragging.
 *
 * The server draws the charts. The numbers come from the table below a chart. Dragging loads a page for that time, in
 * the finest slices that the server keeps, so a zoomed chart has its own address. The box with the numbers is at the
 * end of the document, because a refresh may replace the chart under the pointer.
 */

const LEAST = 8; // pixels: a shorter drag is a click
const APART = 12; // pixels between the pointer and the box

const part = (name) => {
    const node = document.createElement("div");
    node.className = name;
    node.hidden = true;
    node.setAttribute("aria-hidden", "true"); // the table says the same
    document.body.append(node);
    return node;
};
const cursor = part("chart-cursor");
const choice = part("chart-choice");
const tip = part("chart-tip");
let begun = null; // where a drag began: the chart, and the pixel

const chartAt = (event) => event.target.closest?.("[data-chart-surface]")?.closest("[data-chart]");

/** The numbers of a chart: the second at which it begins, the seconds of a slice, and the number of slices. */
const numbers = ({ dataset }) => [dataset.since, dataset.precision, dataset.slices].map(Number);

function place(node, left, top, width, height) {
    Object.assign(node.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    node.hidden = false;
}

/** The slice of *chart* at a pixel; the first or the last if the pixel is outside. */
function sliceAt(chart, x) {
    const { left, width } = chart.querySelector("[data-chart-surface]").getBoundingClientRect();
    const slices = numbers(chart)[2];
    return Math.min(Math.max(Math.floor(((x - left) / width) * slices), 0), slices - 1);
}

function line(text, strong) {
    const node = document.createElement("p");
    const figure = document.createElement("b");
    figure.textContent = strong;
    node.append(figure, ` ${text}`);
    return node;
}

function show(chart, x, y) {
    const [since, precision, slices] = numbers(chart);
    const slice = sliceAt(chart, x);
    const row = chart.querySelector(`tr[data-key="${since + slice * precision}"]`);
    if (!row) return hide();
    const names = [...chart.querySelectorAll("thead th")].slice(1);
    const counts = [...row.querySelectorAll("td")];
    tip.replaceChildren(line("", row.querySelector("th").textContent.trim()),
        ...counts.map((count, at) => line(names[at].textContent, count.textContent)));
    const { left, top, width, height } = chart.querySelector("[data-chart-surface]").getBoundingClientRect();
    place(cursor, left + ((slice + 0.5) / slices) * width, top, 1, height);
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - APART;
    const isRight = x + APART <= room;
    tip.style.left = `${isRight ? x + APART : Math.max(x - APART - tip.offsetWidth, APART / 2)}px`;
    tip.style.top = `${Math.max(Math.min(y + APART, innerHeight - tip.offsetHeight - APART), 0)}px`;
}

function hide() {
    for (const node of [cursor, choice, tip]) node.hidden = true;
}

/** The first and last slice of a drag; null for a click. */
function chosen(x) {
    if (!begun || Math.abs(x - begun.x) < LEAST) return null;
    return [sliceAt(begun.chart, begun.x), sliceAt(begun.chart, x)].sort((one, other) => one - other);
}

function drawChoice(x) {
    const between = chosen(x);
    if (!between) return;
    const slices = numbers(begun.chart)[2];
    const { left, top, width, height } = begun.chart.querySelector("[data-chart-surface]").getBoundingClientRect();
    const [first, last] = between;
    place(choice, left + (first / slices) * width, top, ((last - first + 1) / slices) * width, height);
}

function zoom(chart, [first, last]) {
    const [since, precision] = numbers(chart);
    const at = (slice) => new Date((since + slice * precision) * 1000).toISOString().replace(".000", "");
    const query = new URLSearchParams({ from: at(first), until: at(last + 1) });
    location.assign(`${chart.dataset.zoom}${query}`);
}

document.addEventListener("pointerdown", (event) => {
    const chart = chartAt(event);
    if (!chart?.dataset.zoom || event.button) return;
    begun = { chart, x: event.clientX };
    event.target.setPointerCapture(event.pointerId);
});
document.addEventListener("pointermove", (event) => {
    const chart = begun?.chart ?? chartAt(event);
    if (!chart?.isConnected) return hide();
    show(chart, event.clientX, event.clientY);
    if (begun) drawChoice(event.clientX);
});
document.addEventListener("pointerup", (event) => {
    const between = chosen(event.clientX);
    const chart = begun?.chart;
    begun = null;
    hide();
    if (between) zoom(chart, between);
});
document.addEventListener("pointercancel", () => { begun = null; hide(); });
document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    begun = null;
    hide();
});
addEventListener("scroll", hide, { capture: true, passive: true });
