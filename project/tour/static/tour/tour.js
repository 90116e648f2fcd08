// While tasks of the last purchase are on their way, show how far they are.
const PAUSE = 700; // milliseconds
const MOST = 60; // looks

for (let looks = 0; looks < MOST; looks += 1) {
  const trace = document.querySelector("#tour-trace[data-goes-on]");
  if (!trace) break;
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  const response = await fetch(trace.closest(".tour").dataset.trace).catch(() => null);
  if (!response?.ok) continue;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  trace.replaceWith(page.querySelector("#tour-trace"));
}
