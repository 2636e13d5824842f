// Requests to the server. Where the login has ended, the page goes to the login and comes back.

let leaving = false;
function toLogin() {
  if (leaving) return;
  leaving = true;
  location.href = `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
}

export async function ask(address, options) {
  const answer = await fetch(address, options);
  const isLogin = answer.redirected && new URL(answer.url).pathname === "/login";
  if (!isLogin && answer.status !== 401) return answer;
  toLogin();
  throw new Error("the login has ended");
}

// A piece of a page as the server shows it now; null if it does not answer so.
export async function askPage(address, options) {
  try {
    const answer = await ask(address, options);
    if (answer.ok) return new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch { /* away: the next news asks again */ }
  return null;
}

// A function that does something a moment after it is called, once for a burst of calls.
export function gathered(action, wait = 150) {
  let waiting = null;
  return () => {
    waiting ??= setTimeout(() => { waiting = null; action(); }, wait);
  };
}
