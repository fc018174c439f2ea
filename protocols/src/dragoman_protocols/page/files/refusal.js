// Why a request had no translation as its answer, and whether it is worth another attempt.

export class Refusal extends Error {
  /**
   * @param {'key'|'wait'|'away'|'other'|'final'} kind What helps: a key; waiting; waiting for the server; another attempt by
   *   hand; only another request.
   * @param {string} message A sentence for the user.
   * @param {number|null} retryAfterS Seconds until another attempt; null: there is none by itself.
   */
  constructor(kind, message, retryAfterS = null) {
    super(message);
    this.kind = kind;
    this.retryAfterS = retryAfterS;
  }
}

export const ASKS_FOR_KEY = 'This server asks for a key.';

const DEFAULT_WAIT_S = 5;
const MAX_AWAY_S = 30;

/** The code and the message in an error of any API: native and LibreTranslate `error`, DeepL `message`. */
function read(body) {
  const error = body?.error ?? body;
  if (typeof error === 'string') return { code: '', message: error };
  return { code: error?.code ?? '', message: [error?.message, body?.detail].filter(Boolean).join(': ') };
}

/** The refusal in an answer that is no success; `body` is its JSON, or null. */
export function refusalOf(status, retryAfter, body) {
  const { code, message } = read(body);
  const said = message ? ` The server says: ${message}` : '';
  if (code === 'too_many_auth_failures') return new Refusal('key', `Too many attempts with a wrong key.${said}`);
  if (status === 456 || code === 'quota_exceeded' || (status === 403 && /character/.test(message))) {
    return new Refusal('final', `The quota of this key is used up.${said}`);
  }
  if (code === 'fleet_forbidden') return new Refusal('final', `The fleet view is not shown to you.${said}`);
  if (status === 401 || status === 403) {
    const missing = /required/.test(message);
    return new Refusal('key', missing ? ASKS_FOR_KEY : `This key is not accepted.${said}`);
  }
  if (status === 503 || status === 429) {
    const seconds = Math.max(1, Math.ceil(Number(retryAfter)) || DEFAULT_WAIT_S);
    if (code === 'not_ready') return new Refusal('wait', 'The model is still loading.', seconds);
    if (code === 'rate_limited') return new Refusal('wait', 'These are too many requests at once.', seconds);
    return new Refusal('wait', status === 429 || code === 'overloaded' ? 'The server is busy.' : `The server cannot translate now.${said}`, seconds);
  }
  if (status === 413) return new Refusal('final', `This is too long.${said}`);
  if (code === 'unsupported_pair') return new Refusal('final', `This pair of languages is not served.${said}`);
  if (status === 504) return new Refusal('other', `The translation took too long.${said}`);
  if (status >= 500) return new Refusal('other', `The translation failed.${said}`);
  return new Refusal('final', message || `The server answered with status ${status}.`);
}

/** The refusal in an exception; those of `fetch` mean that no answer came. */
export function refusalIn(error) {
  if (error instanceof Refusal) return error;
  if (error instanceof TypeError) return new Refusal('away', 'The server does not answer.');
  if (error instanceof SyntaxError) return new Refusal('other', 'What answered is not this server: a proxy in front of it, perhaps.');
  throw error;
}

/** Seconds until the next attempt, or null; `attempts` were made so far. */
export function waitS(refusal, attempts) {
  return refusal.kind === 'away' ? Math.min(MAX_AWAY_S, 2 ** attempts) : refusal.retryAfterS;
}

/** Wait, with `tick(seconds left)` each second; `now()` of the result ends the wait, as does the signal. */
export function countdown(seconds, signal, tick) {
  let now;
  const done = new Promise((resolve) => {
    const end = performance.now() + seconds * 1000;
    const step = () => {
      const left = Math.ceil((end - performance.now()) / 1000);
      if (left <= 0) return now();
      tick(left);
    };
    const timer = setInterval(step, 250);
    now = () => { clearInterval(timer); resolve(); };
    signal.addEventListener('abort', now, { once: true });
    step();
  });
  return { done, now };
}
