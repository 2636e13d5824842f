// Forms whose entries stay where they are if the server refuses them: what is wrong stands at its
// field. Without scripts, the page comes anew with it.

import { ask } from "./asking.js";

function clear(form) {
  document.getElementById("problem")?.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-errormessage");
  }
}

function show(form, problem) {
  const said = document.createElement("p");
  said.id = "problem";
  said.className = "problem";
  said.setAttribute("role", "alert");
  said.textContent = problem.textContent.trim();
  const found = form.elements[problem.dataset.at || problem.previousElementSibling?.name];
  const field = found instanceof RadioNodeList ? found[0] : found;
  const place = field?.closest("label, .knob") ?? field;
  if (!place || place.type === "hidden") form.prepend(said);
  else place.after(said);
  if (field && field.type !== "hidden") {
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-errormessage", "problem");
    field.closest("details")?.setAttribute("open", "");
    field.focus();
  } else said.scrollIntoView({ block: "nearest" });
}

// Send a form; the page goes where the server leads, or says what is wrong.
export async function send(form, failed) {
  const buttons = [...form.querySelectorAll("button:not([type=button])")];
  clear(form);
  for (const button of buttons) button.disabled = true;
  try {
    const answer = await ask(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (answer.redirected) return location.assign(answer.url);
    const text = await answer.text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const problem = page.getElementById("problem") ?? page.querySelector(".error-page p:not(.code)");
    if (problem) show(form, problem);
    else if (answer.ok) {
      document.getElementById("main").replaceWith(page.getElementById("main"));
      document.dispatchEvent(new CustomEvent("page"));
    } else failed("that did not work");
  } catch {
    failed("habitus does not answer");
  }
  for (const button of buttons) button.disabled = false;
}

export function startForms(failed) {
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || !event.target.matches("form[data-stay]")) return;
    event.preventDefault();
    send(event.target, failed);
  });
}
