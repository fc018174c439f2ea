// The API key: in the session storage of this tab, where the browser has one, and nowhere else.

const NAME = 'dragoman-key';
let kept = '';
try { kept = sessionStorage.getItem(NAME) ?? ''; } catch { /* Without storage it lasts as long as the page. */ }

/** Headers with the key, if there is one. */
export function keyHeaders() {
  return kept ? { Authorization: `Bearer ${kept}` } : {};
}

export const hasKey = () => kept !== '';

/** Keep a key; an empty one forgets it. */
export function keepKey(key) {
  kept = key;
  try {
    if (key) sessionStorage.setItem(NAME, key);
    else sessionStorage.removeItem(NAME);
  } catch { /* See above. */ }
}
