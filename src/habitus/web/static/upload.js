// A recording that is dropped onto a page, and sent as it is.

import { csrf } from "./main.js";

// Call a function with the file that is dropped anywhere on the page; an element shows where.
export function onDrop(shown, listener) {
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      shown.classList.add("over");
    });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) shown.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    shown.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) listener(file);
  });
}

export const cameraName = (file) => file.name.replace(/\.[^.]*$/, "");

// Send a file; returns its id. What is going on is said as a share and in words.
export function upload(file, say, address = "/api/uploads") {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", address);
    request.setRequestHeader("X-CSRF-Token", csrf);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = ({ loaded, total }) => {
      const share = Math.round((100 * loaded) / total);
      say(share, share < 100 ? `${share} % uploaded` : "looking at it");
    };
    request.onerror = () => failed(new Error("the upload was interrupted"));
    request.onload = () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText) ?? {}; } catch { /* shown below */ }
      if (request.status < 300) done(answer.id);
      else failed(new Error(answer.detail ?? "the upload was refused"));
    };
    request.send(file);
  });
}
