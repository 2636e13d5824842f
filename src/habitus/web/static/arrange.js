// The wall as somebody wants it: order, size and group of its tiles, by dragging or with buttons.

import { csrf, toast } from "./main.js";
import { ask, gathered } from "./asking.js";
import { announce } from "./news.js";

const SIZES = ["Small", "Large", "Largest"];
const tiles = () => [...document.querySelectorAll(".tile")];
const nameOf = (tile) => tile.querySelector(".tile-name").textContent;
const groupOf = (tile) => tile.parentElement.dataset.group ?? "";

async function save(changes = new Map()) {
  const layout = {
    live_first: document.getElementById("live-first").checked,
    tiles: tiles().map((tile) => ({
      camera: tile.dataset.camera, size: Number(tile.dataset.size), group: changes.get(tile) ?? groupOf(tile),
    })),
  };
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
  const answer = await ask("/api/wall", { method: "PUT", headers, body: JSON.stringify(layout) }).catch(() => null);
  if (!answer?.ok) toast("the wall could not be kept", "bad");
}
const saveSoon = gathered(save, 300);

function move(tile, by) {
  const other = by < 0 ? tile.previousElementSibling : tile.nextElementSibling;
  if (!other) return;
  if (by < 0) other.before(tile); else other.after(tile);
  const places = [...tile.parentElement.children];
  announce(`${nameOf(tile)}: place ${places.indexOf(tile) + 1} of ${places.length}`);
  saveSoon();
}

function resize(tile, size) {
  tile.classList.remove(`size-${tile.dataset.size}`);
  tile.dataset.size = size;
  tile.classList.add(`size-${size}`);
  saveSoon();
}

// Another group is another part of the page, which the server makes.
async function regroup(tile, group) {
  await save(new Map([[tile, group.trim().slice(0, 60)]]));
  location.hash = "arrange";
  location.reload();
}

function made(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function controls(tile) {
  const name = nameOf(tile);
  const earlier = made("button", { type: "button", class: "square", "aria-label": `${name}: earlier` }, "←");
  const later = made("button", { type: "button", class: "square", "aria-label": `${name}: later` }, "→");
  earlier.addEventListener("click", () => { move(tile, -1); earlier.focus(); });
  later.addEventListener("click", () => { move(tile, 1); later.focus(); });
  const size = made("select", { "aria-label": `${name}: size` }, ...SIZES.map((text, k) => made("option", { value: k + 1 }, text)));
  size.value = tile.dataset.size;
  size.addEventListener("change", () => resize(tile, size.value));
  const group = made("input", { "aria-label": `${name}: group`, placeholder: "Group", maxlength: 60, list: "group-names" });
  group.value = groupOf(tile);
  group.addEventListener("change", () => regroup(tile, group.value));
  return made("div", { class: "arrange" }, earlier, later, size, group);
}

let dragged = null;
function onDrag(tile) {
  tile.addEventListener("dragstart", (event) => { dragged = tile; event.dataTransfer.effectAllowed = "move"; });
  tile.addEventListener("dragend", () => { dragged = null; saveSoon(); });
  tile.addEventListener("dragover", (event) => {
    if (!dragged || dragged === tile || dragged.parentElement !== tile.parentElement) return;
    event.preventDefault();
    const isAfter = dragged.compareDocumentPosition(tile) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (isAfter) tile.after(dragged); else tile.before(dragged);
  });
}

export function startArranging() {
  const [button, bar] = ["arrange", "arranging"].map((id) => document.getElementById(id));
  if (!button) return () => false;
  const names = new Set(tiles().map(groupOf).filter(Boolean));
  bar.append(made("datalist", { id: "group-names" }, ...[...names].map((value) => made("option", { value }))));
  tiles().forEach(onDrag);
  const toggle = () => {
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(isOn));
    document.body.classList.toggle("arranging", isOn);
    bar.hidden = !isOn;
    for (const tile of tiles()) {
      tile.draggable = isOn;
      if (isOn) tile.append(controls(tile)); else tile.querySelector(".arrange")?.remove();
    }
  };
  button.addEventListener("click", toggle);
  document.getElementById("live-first").addEventListener("change", ({ target }) => {
    document.getElementById("tiles").classList.toggle("live-first", target.checked);
    saveSoon();
  });
  if (location.hash === "#arrange") toggle();
  return toggle;
}
