// The list of events: the newest comes by itself.

import { settle } from "./main.js";
import { gathered } from "./asking.js";
import { announce, merge, onNews } from "./news.js";
import { onKeys } from "./keys.js";

onNews(["event", "review", "again"], gathered(async () => {
  const list = document.getElementById("results");
  const added = await merge(list, list.dataset.source);
  if (added.length) announce(`New event: ${added[0].querySelector(".why").textContent}`);
  settle(list);
}));

function step(by) {
  const links = [...document.querySelectorAll("#results a.whole")];
  const here = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, here + by))]?.focus();
}

// Choosing: how many there are, and the key for the one that has the focus.
const act = document.getElementById("act");
function countChosen() {
  act.querySelector("[data-chosen]").textContent = document.querySelectorAll(".choose input:checked").length;
}
document.addEventListener("change", countChosen);
act.addEventListener("reset", () => setTimeout(countChosen));
// The list that is come back to has the filters of now.
act.addEventListener("submit", () => { act.elements.back.value = location.search; });
function choose() {
  const box = document.activeElement?.closest(".event")?.querySelector(".choose input");
  if (!box) return false;
  box.click();
  return true;
}

function chooseAll() {
  for (const box of document.querySelectorAll(".choose input")) box.checked = true;
  countChosen();
}
act.querySelector("[data-all]").addEventListener("click", chooseAll);

onKeys({
  j: () => step(1),
  k: () => step(-1),
  x: choose,
  X: chooseAll,
  "/": () => document.getElementById("words").focus(),
});
