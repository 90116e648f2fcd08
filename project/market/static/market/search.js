/* Submits the market's search as soon as a name is chosen. Without scripts the button does it. */

document.querySelector(".filters").addEventListener("complete", (event) => event.target.closest("form").requestSubmit());
