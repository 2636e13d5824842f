// The wall: pictures, states, and the latest events.

import { settle, toast } from "./main.js";
import { askPage, gathered } from "./asking.js";
import { showLatest } from "./latest.js";
import { onNews } from "./news.js";
import { onKeys } from "./keys.js";
import { behaviourChip } from "./behaviours.js";
import { watchPictures } from "./pictures.js";
import { drawSparks, extend } from "./spark.js";
import { startArranging } from "./arrange.js";
import { toggleScreen } from "./screen.js";
import { startVideos, toggleVideo } from "./tiles.js";
import { cameraName, onDrop, upload } from "./upload.js";

// Milliseconds after which tiles are brought up to date without any news.
const ANYWAY = 60000;
// Bring the words of a tile up to date; its picture stays.
async function renewTile(camera) {
  const tile = document.getElementById(`tile-${camera}`);
  if (!tile) return;
  const page = await askPage(`/parts/tiles/${encodeURIComponent(camera)}`);
  if (!page) return;
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
  drawSparks(tile);
}

// What a camera does now, and what is expected next.
function tellNow(news) {
  const tile = document.getElementById(`tile-${news.camera}`);
  if (tile?.dataset.state !== "watching") return;
  const spark = tile.querySelector(".spark");
  if (spark && news.normality !== null) extend(spark, news);
  const row = tile.querySelector('[data-part="behaviours"] > :first-child');
  if (!news.behaviour) return;
  const expected = news.expected ?? [];
  const parts = [behaviourChip(news.behaviour, news.names?.[news.behaviour])];
  const best = expected.indexOf(Math.max(...expected));
  if (expected.length && best + 1 !== news.behaviour) {
    const arrow = document.createElement("span");
    arrow.className = "arrow";
    arrow.textContent = " → ";
    parts.push(arrow, behaviourChip(best + 1, `${news.names?.[best + 1] ?? best + 1} next, ${Math.round(100 * expected[best])} %`));
  }
  row.className = "";
  row.replaceChildren(...parts);
}

const renewAll = () => document.querySelectorAll(".tile").forEach((tile) => renewTile(tile.dataset.camera));

// One renewal of each tile for a burst of news.
const renewals = new Map();
function renewSoon({ camera }) {
  if (!camera) return;
  if (!renewals.has(camera)) renewals.set(camera, gathered(() => renewTile(camera)));
  renewals.get(camera)();
}

// A tile in which something happens is framed for a while.
const FRAMED = 20000;
const framed = new Map();
function frame({ camera, kind, alarm }) {
  const tile = document.getElementById(`tile-${camera}`);
  if (!tile || kind !== "started" || alarm === false) return;
  clearTimeout(framed.get(tile));
  tile.classList.remove("happening");
  requestAnimationFrame(() => tile.classList.add("happening"));
  framed.set(tile, setTimeout(() => tile.classList.remove("happening"), FRAMED));
}

showLatest();
drawSparks();
onNews(["camera", "event"], renewSoon);
onNews(["event"], frame);
onNews(["judged"], tellNow);
onNews(["again"], gathered(renewAll));
setInterval(() => document.hidden || renewAll(), ANYWAY);
watchPictures();
startVideos();
const arrange = startArranging();

// A recording that is dropped anywhere is uploaded; then it is asked what to do with it.
const drop = document.getElementById("drop");
if (drop) {
  const [words, progress] = [drop.querySelector("strong"), drop.querySelector("progress")];
  const before = words.textContent;
  onDrop(drop, async (file) => {
    drop.classList.add("busy");
    try {
      const id = await upload(file, (share, said) => { progress.value = share; words.textContent = said; });
      location.href = `/cameras/new?${new URLSearchParams({ upload: id, name: cameraName(file) })}#file`;
    } catch (error) {
      toast(error.message, "bad");
      drop.classList.remove("busy");
      words.textContent = before;
    }
  });
}

onKeys({
  f: () => {
    const tile = document.activeElement.closest(".tile") ?? document.querySelector(".tile:hover");
    toggleScreen(tile?.querySelector(".view") ?? document.documentElement);
  },
  v: toggleVideo,
  o: arrange,
  w: () => { location.href = "/?wall"; },
  Escape: () => { if (document.fullscreenElement) document.exitFullscreen(); else if (document.body.classList.contains("bare")) location.href = "/"; else return false; },
});
for (let k = 1; k <= 9; k += 1) {
  onKeys({ [k]: () => document.querySelectorAll(".tile-name")[k - 1]?.click() });
}
