// Keys: single letters where nothing is being typed; "g" and a letter go to a page.

const PLACES = { w: "/", e: "/events", r: "/review", s: "/settings" };
const keys = new Map();
let going = 0;

// Add keys of a page, by their name; a handler that returns false did not want the key.
export function onKeys(handlers) {
  for (const [key, handler] of Object.entries(handlers)) keys.set(key, handler);
}

function typing(target) {
  return target.closest?.('input:not([type="checkbox"], [type="radio"], [type="range"], [type="button"]), select, textarea, [contenteditable]');
}

export function startKeys(handlers) {
  onKeys(handlers);
  const dialog = document.getElementById("keys");
  const showKeys = () => dialog.showModal();
  document.getElementById("show-keys")?.addEventListener("click", showKeys);
  onKeys({ "?": showKeys });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches?.('[type="range"]') && /^(Arrow|Home|End|Page)/.test(event.key)) return;
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    if (Date.now() - going < 1500 && PLACES[event.key]) {
      event.preventDefault();
      location.href = PLACES[event.key];
      return;
    }
    going = event.key === "g" ? Date.now() : 0;
    const handler = keys.get(event.key);
    if (handler && handler(event) !== false) event.preventDefault();
  });
}
