// Why a request had no translation as its answer, and whether it is worth another attempt.

export class Refusal extends Error {
  /**
   * @param {'key'|'wait'|'away'|'other'|'final'} kind What helps: a key; waiting; waiting for the server; another attempt by
   *   hand; only another request.
   * @param {string} message A sentence for the user.
   * @param {number|null} retryAfterS Seconds until another attempt; null: there is none by itself.
   * @param {string} code The server's name of the cause.
   */
  constructor(kind, message, retryAfterS = null, code = '') {
    super(message);
    this.kind = kind;
    this.retryAfterS = retryAfterS;
    this.code = code;
  }
}

export const ASKS_FOR_KEY = 'This server asks for a key.';

const DEFAULT_WAIT_S = 5;
const MAX_AWAY_S = 30;
/** Names of fields: a message that has some is for programs. */
const IDENTIFIER = /\b[a-z]+_[a-z]|\w\[\d/;

/** Causes that only another request removes, and what the page says of them. */
const CAUSES = {
  bad_request: '',
  malformed_request: '',
  invalid_field: '',
  body_too_large: 'This is too long.',
  text_too_long: 'This is too long.',
  empty_text: 'There is nothing to translate.',
  unknown_language: 'The language of this text could not be detected. Choose it above the text.',
  unsupported_pair: 'This pair of languages is not served.',
  unsupported_option: 'This model does not use glossaries. Choose “No glossary”.',
  unknown_glossary: 'This glossary is not there any more. Choose another one.',
  unsupported_file: 'Documents of this kind are not translated.',
  broken_file: 'This document cannot be read.',
  quota_exceeded: 'The quota of this key is used up.',
  fleet_forbidden: 'The fleet view is not shown to you.',
};
/** Causes of which the sentence says all. */
const COMPLETE = new Set(['empty_text', 'unknown_language', 'unsupported_option', 'unknown_glossary', 'unsupported_file']);

/** The code and the message in an error of any API: native and LibreTranslate `error`, DeepL `message`. */
function read(body) {
  const error = body?.error ?? body;
  if (typeof error === 'string') return { code: '', message: error };
  return { code: error?.code ?? '', message: [error?.message, body?.detail].filter(Boolean).join(': ') };
}

/**
 * The refusal in an answer that is no success.
 * @param {number} status 500 where an error came without one.
 * @param {string|null} retryAfter
 * @param {object|null} body Its JSON.
 * @param {{language: string, elsewhere: (tag: string) => string}} wanted Name of the language that was translated to; a sentence
 *   about what else is served, for a text in a language.
 */
export function refusalOf(status, retryAfter, body, { language = '', elsewhere = () => '' } = {}) {
  const { code, message: sent } = read(body);
  const message = IDENTIFIER.test(sent) ? '' : sent;
  const said = message ? ` The server says: ${message}` : '';
  const refusal = (kind, sentence, seconds) => new Refusal(kind, sentence, seconds, code);
  if (code === 'too_many_auth_failures') return refusal('key', `Too many attempts with a wrong key.${said}`);
  if (status === 456 || (status === 403 && /character/.test(message))) return refusal('final', CAUSES.quota_exceeded + said);
  const unserved = code === 'unsupported_pair' && /^the text is in (.+?) \(([\w-]+)\)/.exec(message);
  if (unserved) return refusal('final', `This text is in ${unserved[1]}, which is not translated to ${language} here. ${elsewhere(unserved[2])}`);
  if (CAUSES[code]) return refusal('final', CAUSES[code] + (COMPLETE.has(code) ? '' : said));
  if (status === 401 || status === 403) {
    const missing = /required/.test(sent);
    return refusal('key', missing ? ASKS_FOR_KEY : `This key is not accepted.${said}`);
  }
  if (status === 503 || status === 429) {
    const seconds = Math.max(1, Math.ceil(Number(retryAfter)) || DEFAULT_WAIT_S);
    if (code === 'not_ready') return refusal('wait', `The model${language && ` for ${language}`} is still loading.`, seconds);
    if (code === 'rate_limited') return refusal('wait', 'These are too many requests at once.', seconds);
    return refusal('wait', status === 429 || code === 'overloaded' ? 'The server is busy.' : `The server cannot translate now.${said}`, seconds);
  }
  if (status === 413) return refusal('final', `This is too long.${said}`);
  if (status === 504) return refusal('other', `The translation took too long.${said}`);
  if (code === 'unknown_document') return refusal('other', 'The server does not have this document any more.');
  if (status >= 500 && !(code in CAUSES)) return refusal('other', `The translation failed.${said}`);
  return refusal('final', message || `The server does not accept this request (status ${status}). The page may be outdated: reload it.`);
}

/** The refusal in an exception; those of `fetch` mean that no answer came. */
export function refusalIn(error) {
  if (error instanceof Refusal) return error;
  if (error instanceof TypeError) return new Refusal('away', navigator.onLine ? 'The server does not answer.' : 'This device is offline.');
  if (error instanceof SyntaxError) return new Refusal('other', 'What answered is not this server: a proxy in front of it, perhaps.');
  throw error;
}

/** Seconds until the next attempt, or null; `attempts` were made so far. */
export function waitS(refusal, attempts) {
  return refusal.kind === 'away' ? Math.min(MAX_AWAY_S, 2 ** attempts) : refusal.retryAfterS;
}

/** Wait, with `tick(seconds left)` each second; `now()` of the result ends the wait, as do the signal and a network that is back. */
export function countdown(seconds, signal, tick) {
  let now;
  const done = new Promise((resolve) => {
    const ended = new AbortController();
    const end = performance.now() + seconds * 1000;
    const step = () => {
      const left = Math.ceil((end - performance.now()) / 1000);
      if (left <= 0) return now();
      tick(left);
    };
    const timer = setInterval(step, 250);
    now = () => { clearInterval(timer); ended.abort(); resolve(); };
    signal.addEventListener('abort', now, { signal: ended.signal });
    addEventListener('online', now, { signal: ended.signal });
    step();
  });
  return { done, now };
}
