// What every page does in the browser alone, so that it works at once and costs the server nothing.

// Light, dark, or as the system has it; the browser remembers. `next` goes on to the next of them.
window.owMode = (next) => {
  const key = "oneway-dark";
  const modes = ["auto", "light", "dark"];
  let mode = localStorage.getItem(key) || "auto";
  if (next) mode = modes[(modes.indexOf(mode) + 1) % 3];
  localStorage.setItem(key, mode);
  Quasar.Dark.set(mode === "auto" ? "auto" : mode === "dark");
  const button = document.querySelector("[data-mode]");
  if (button) {
    button.dataset.mode = mode;
    button.setAttribute("aria-label", "Colours: " + mode + "; press to change");
    button.title = "Colours: " + mode;
  }
};
window.addEventListener("load", () => setTimeout(() => window.owMode(false), 50));

// Copies the text of one element, and says so in another.
window.owCopy = (from, told) => {
  const source = document.querySelector(from);
  const done = () => (document.querySelector(told).innerText = "Copied.");
  const byHand = () => {
    // Without HTTPS a browser gives its clipboard only to what is selected.
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    if (document.execCommand("copy")) done();
  };
  navigator.clipboard ? navigator.clipboard.writeText(source.innerText).then(done, byHand) : byHand();
};
