// A backup that is given on the page of the settings.

import { toast } from "./main.js";
import { upload } from "./upload.js";

const part = (id) => document.getElementById(id);

part("restore-start")?.addEventListener("click", async ({ target }) => {
  const [file] = part("restore-file").files;
  if (!file) return part("restore-file").focus();
  target.disabled = true;
  part("upload").hidden = false;
  try {
    await upload(file, (share, words) => {
      part("upload-progress").value = share;
      part("upload").firstElementChild.textContent = words;
    }, "/api/restore");
    return location.reload();
  } catch (error) {
    part("restore-said").textContent = `It was not taken: ${error.message}.`;
    toast(error.message, "bad");
  }
  part("upload").hidden = true;
  target.disabled = false;
});
