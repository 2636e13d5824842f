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
onKeys({ j: () => step(1), k: () => step(-1), "/": () => document.getElementById("camera").focus() });
