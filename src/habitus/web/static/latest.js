// A short list of the latest events: the newest comes by itself, and is said.

import { settle } from "./main.js";
import { gathered } from "./asking.js";
import { announce, merge, onNews } from "./news.js";

export function showLatest() {
  const list = document.getElementById("latest");
  if (!list) return;
  onNews(["event", "review", "again"], gathered(async () => {
    const most = Number(list.dataset.most);
    const [newest] = await merge(list, list.dataset.source, most);
    if (newest && newest === list.firstElementChild) {
      const part = (selector) => newest.querySelector(selector).textContent;
      announce(`New event: ${part("strong")}, ${part(".why")}`);
    }
    [...list.children].slice(most).forEach((row) => row.remove());
    settle(list);
  }));
}
