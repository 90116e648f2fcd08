/* What is chosen in the market's search is shown at once. Without scripts the button does it. */

document.querySelector(".filters").addEventListener("complete", (event) => event.target.closest("form").requestSubmit());
