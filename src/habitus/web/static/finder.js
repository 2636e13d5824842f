// Finding a camera: devices of the network, their streams, usual addresses of makers, a picture.

import { ask } from "./asking.js";
import { csrf } from "./main.js";

const part = (id) => document.getElementById(id);

async function find(what, body) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
  const answer = await ask(`/api/finding/${what}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error((await answer.json()).detail);
  return answer;
}

export function startFinder(form) {
  const { address, username, password, local } = form.elements;
  const said = part("finder-said");
  const known = () => ({ username: username.value.trim(), password: password.value, local: local.checked });

  // Do something that takes a while, with a button that waits, and say how it ended.
  async function during(button, words, action) {
    button.disabled = true;
    said.textContent = words;
    try { said.textContent = await action(); } catch (error) { said.textContent = `That did not work: ${error.message}.`; }
    button.disabled = false;
  }

  function choose(stream) {
    address.value = stream.address;
    address.dispatchEvent(new Event("input"));
    part("look").focus();
    return `${stream.name} is chosen. Look at a test picture.`;
  }

  function row(text, detail, label, action) {
    const item = document.createElement("li");
    const words = document.createElement("div");
    const small = document.createElement("div");
    const button = document.createElement("button");
    words.className = "grow";
    small.className = "small muted";
    words.append(text, small);
    small.textContent = detail;
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-label", `${label}: ${text} ${detail}`);
    button.addEventListener("click", () => action(button));
    item.append(words, button);
    return item;
  }

  async function showStreams(device, button) {
    const streams = await (await find("streams", { device: device.address, ...known() })).json();
    if (!streams.length) throw new Error("it has no streams");
    if (!form.elements.name.value) form.elements.name.value = device.name;
    const rows = streams.map((one, k) => row(
      `${device.name}: ${one.name}`,
      `${one.width} x ${one.height}, ${one.encoding}${streams.length > 1 && k === streams.length - 1 ? ", enough for watching" : ""}`,
      "Choose",
      () => { said.textContent = choose(one); },
    ));
    part("found").replaceChildren(...rows);
    part("found").lastElementChild.querySelector("button").focus();
    return `${streams.length === 1 ? "1 stream" : `${streams.length} streams`} of ${device.name}.`;
  }

  part("find")?.addEventListener("click", () => during(part("find"), "Asking the network.", async () => {
    const devices = await (await find("devices", {})).json();
    part("found").replaceChildren(...devices.map((device) => row(
      device.name,
      `${device.hardware} ${new URL(device.address).host}`.trim(),
      "Streams",
      (button) => during(button, "Asking the camera.", () => showStreams(device, button)),
    )));
    const answered = devices.length === 1 ? "1 camera answered." : `${devices.length} cameras answered.`;
    return devices.length ? answered : "No camera answered. Give its address instead.";
  }));

  part("maker")?.addEventListener("change", ({ target }) => {
    const { sub } = target.selectedOptions[0].dataset;
    if (!sub) return;
    const host = address.value.replace(/^\w+:\/\//, "").replace(/^.*@/, "").replace(/[:/].*$/, "");
    address.value = `rtsp://${host || "HOST"}${sub}`;
    address.focus();
    if (!host) address.setSelectionRange(7, 11);
  });

  const looking = () => during(part("look"), "Waiting for a picture.", async () => {
    if (!address.value.trim()) throw new Error("give an address first");
    const answer = await find("picture", { address: address.value.trim(), ...known() });
    const picture = part("test-picture");
    URL.revokeObjectURL(picture.src);
    picture.src = URL.createObjectURL(await answer.blob());
    picture.hidden = false;
    return `It shows ${answer.headers.get("X-Size").replace("x", " x ")} pixels.`;
  });
  part("look").addEventListener("click", looking);
  part("finder").hidden = false;
}
