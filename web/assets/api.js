// Requests of the page: lists, and actions with the token that the user typed.
const tokenKey = "runnel-token";

export const token = {
  get: () => sessionStorage.getItem(tokenKey) || "",
  set: (text) => sessionStorage.setItem(tokenKey, text),
  forget: () => sessionStorage.removeItem(tokenKey),
};

async function answer(response) {
  if (response.status === 204) return null;
  let body;
  try {
    body = await response.json();
  } catch {
    throw new Error(`the server answered ${response.status}`);
  }
  if (!response.ok) {
    const err = new Error([body.result, body.error].filter(Boolean).join("; ") || `the server answered ${response.status}`);
    err.status = response.status;
    throw err;
  }
  return body;
}

// list requests a list; undefined or empty parameters are left out, a list is several.
export async function list(what, query, signal) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") for (const one of [value].flat()) q.append(name, one);
  }
  return answer(await fetch(`api/${what}?${q}`, { signal }));
}

function post(path, body) {
  return fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Runnel-Dashboard": "1", "X-Runnel-Token": token.get() },
    body: JSON.stringify(body),
  }).then(answer);
}

export const checkToken = () => post("api/token", {});
export const act = (name, body) => post("api/actions/" + name, body);
