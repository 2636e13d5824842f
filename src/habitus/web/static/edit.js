// Adding and changing a camera: the knob, and a dropped recording.

import { toast } from "./main.js";
import { send } from "./forms.js";
import { cameraName, onDrop, upload } from "./upload.js";
import { startFinder } from "./finder.js";

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

startFinder(part("camera-form"));

// A recording: its name is then that of the camera.
const drop = document.querySelector("[data-drop]");
if (drop) {
  const form = part("camera-form");
  const input = part("recording");
  const choose = () => {
    const [file] = input.files;
    if (!file) return;
    if (!part("name").value) part("name").value = cameraName(file);
    part("upload-name").value = "";
    part("uploaded")?.remove();
    part("save").textContent = "Upload and add";
    drop.scrollIntoView({ block: "nearest" });
  };
  input.addEventListener("change", choose);
  onDrop(drop, (file) => {
    const list = new DataTransfer();
    list.items.add(file);
    input.files = list.files;
    choose();
  });
  const say = (share, words) => {
    part("upload-progress").value = share;
    part("upload").firstElementChild.textContent = words;
  };
  form.addEventListener("submit", async (event) => {
    const [file] = input.files;
    if (!file || part("upload-name").value) return;
    event.preventDefault();
    part("save").disabled = true;
    part("upload").hidden = false;
    try {
      part("upload-name").value = await upload(file, say);
      await send(form, (reason) => toast(reason, "bad"));
    } catch (error) {
      toast(error.message, "bad");
    }
    part("upload").hidden = true;
    part("save").disabled = false;
  });
}
