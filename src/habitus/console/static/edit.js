// Adding and changing a camera: the knob, a dropped recording, and shapes on the picture.

import { csrf, toast } from "./main.js";
import { watchPictures } from "./pictures.js";
import { Drawing } from "./drawing.js";

const part = (id) => document.getElementById(id);

// The knob turns by ratios: from a tenth of an alert to a hundred.
const knob = part("alerts-range");
const number = part("alerts");
const turn = () => { knob.value = Math.log10(Number(number.value) || 1); };
knob.hidden = false;
turn();
number.addEventListener("input", turn);
knob.addEventListener("input", () => {
  const value = 10 ** Number(knob.value);
  number.value = Number(value.toPrecision(value < 1 ? 1 : 2));
});

if (part("draw")) {
  new Drawing(part("canvas"), part("mask"), part("region"), part("draw-said"));
  watchPictures();
}

// A recording: sent as it is, with progress; its name is then that of the camera.
const drop = document.querySelector("[data-drop]");
if (drop) {
  const form = part("camera-form");
  const input = part("recording");
  let file = null;
  const choose = (chosen) => {
    file = chosen;
    if (!file) return;
    if (!part("name").value) part("name").value = file.name.replace(/\.[^.]*$/, "");
    part("save").textContent = "Upload and add";
    drop.scrollIntoView({ block: "nearest" });
  };
  input.addEventListener("change", () => choose(input.files[0]));
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const [dropped] = event.dataTransfer.files;
    if (!dropped) return;
    const list = new DataTransfer();
    list.items.add(dropped);
    input.files = list.files;
    choose(dropped);
  });
  form.addEventListener("submit", async (event) => {
    if (!file || part("upload-name").value) return;
    event.preventDefault();
    part("save").disabled = true;
    part("upload").hidden = false;
    try {
      part("upload-name").value = await upload(file);
      form.submit();
    } catch (error) {
      toast(error.message, "bad");
      part("upload").hidden = true;
      part("save").disabled = false;
    }
  });
}

function upload(file) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/api/uploads");
    request.setRequestHeader("X-CSRF-Token", csrf);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = ({ loaded, total }) => {
      const share = Math.round((100 * loaded) / total);
      part("upload-progress").value = share;
      part("upload").firstElementChild.textContent = share < 100 ? `${share} % uploaded` : "looking at it";
    };
    request.onerror = () => failed(new Error("the upload was interrupted"));
    request.onload = () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* told below */ }
      if (request.status < 300) done(answer.id);
      else failed(new Error(answer.detail ?? "the upload was refused"));
    };
    request.send(file);
  });
}
