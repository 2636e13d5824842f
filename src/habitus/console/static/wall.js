// The wall: pictures, states, and the latest events.

import { settle } from "./main.js";
import { showLatest } from "./latest.js";
import { onNews } from "./news.js";
import { onKeys } from "./keys.js";
import { behaviourChip } from "./behaviours.js";
import { watchPictures } from "./pictures.js";

const SPARKS_EVERY = 15000;
// Bring the words of a tile up to date; its picture stays.
async function renewTile(camera) {
  const tile = document.getElementById(`tile-${camera}`);
  if (!tile) return;
  const answer = await fetch(`/parts/tiles/${encodeURIComponent(camera)}`);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector(".tile");
  if (!fresh) return tile.remove();
  const focused = tile.contains(document.activeElement);
  tile.dataset.state = fresh.dataset.state;
  tile.querySelector(".tile-body").replaceWith(fresh.querySelector(".tile-body"));
  tile.querySelector(".view .corner")?.remove();
  const corner = fresh.querySelector(".view .corner");
  if (corner) tile.querySelector(".view").append(corner);
  if (focused) tile.querySelector(".tile-name").focus();
  settle(tile);
}

// What a camera does now, and what is expected next.
function tellNow(news) {
  const row = document.querySelector(`#tile-${CSS.escape(news.camera)} [data-part="behaviours"] > :first-child`);
  if (!row || !news.behaviour) return;
  const expected = news.expected ?? [];
  const parts = [behaviourChip(news.behaviour, `${news.behaviour} now`)];
  if (expected.length) {
    const best = expected.indexOf(Math.max(...expected));
    const arrow = document.createElement("span");
    arrow.className = "arrow";
    arrow.textContent = " → ";
    parts.push(arrow, behaviourChip(best + 1, `${best + 1} next, ${Math.round(100 * expected[best])} %`));
  }
  row.replaceChildren(...parts);
}

const renewAll = () => document.querySelectorAll(".tile").forEach((tile) => renewTile(tile.dataset.camera));

showLatest();
onNews(["camera", "event"], (news) => news.camera && renewTile(news.camera));
onNews(["judged"], tellNow);
onNews(["again"], renewAll);
setInterval(() => document.hidden || renewAll(), SPARKS_EVERY);
watchPictures();

onKeys({
  w: () => { location.href = "/?wall"; },
  Escape: () => { if (document.body.classList.contains("bare")) location.href = "/"; else return false; },
});
for (let k = 1; k <= 9; k += 1) {
  onKeys({ [k]: () => document.querySelectorAll(".tile-name")[k - 1]?.click() });
}
