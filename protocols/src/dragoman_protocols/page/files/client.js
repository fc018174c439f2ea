// Requests to the APIs of this server. Paths are relative: the page may be below /d/NAMESPACE/NAME/ or a proxy's prefix.

import { hasKey, keyHeaders } from './key.js';
import { ASKS_FOR_KEY, Refusal, refusalOf } from './refusal.js';

const POLL_MS = 500;

async function call(path, { method, body, signal, wanted } = {}) {
  const headers = keyHeaders();
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const options = { method: method ?? (body === undefined ? 'GET' : 'POST'), headers, signal };
  const response = await fetch(path, body === undefined ? options : { ...options, body: JSON.stringify(body) });
  if (!response.ok) throw refusalOf(response.status, response.headers.get('Retry-After'), await response.json().catch(() => null), wanted);
  return response;
}

/** The JSON that a path answers with. */
export const json = async (path, options) => (await call(path, options)).json();

/** The languages with their targets, and what the server accepts. */
export async function site(signal) {
  const [languages, settings] = await Promise.all([json('languages', { signal }), json('frontend/settings', { signal })]);
  if (settings.keyRequired && !hasKey()) throw new Refusal('key', ASKS_FOR_KEY);
  if (!languages.length) throw new Refusal('wait', 'No model is deployed yet.', 10);
  return { languages, settings };
}

/** The glossaries that this key may use; none where the server keeps none. */
export async function glossaries() {
  try {
    return (await json('v3/glossaries')).glossaries ?? [];
  } catch {
    return [];
  }
}

const pairOf = ({ source, target, glossary }) => ({ source_lang: source, target_lang: target, ...(glossary && { glossary_id: glossary }) });

/**
 * Translate a text; `onPiece` gets each piece of the translation.
 * @returns {Promise<{text: string, source: string, confidence: number, segments: number, warnings: {code: string, detail: string}[]}>}
 */
export async function translate(wanted, signal, onPiece) {
  const response = await call('translate', { body: { text: wanted.text, ...pairOf(wanted), details: true, stream: true }, signal, wanted });
  for await (const { name, data } of events(response.body)) {
    if (name === 'delta') onPiece(data.text);
    if (name === 'error') throw refusalOf(500, null, data, wanted);
    if (name === 'result') {
      const { source_lang, confidence, segments, warnings } = data.details[0];
      return { text: data.translation, source: source_lang, confidence: confidence ?? 0, segments, warnings };
    }
  }
  throw new TypeError('the answer ended before its result');
}

/** Other translations of a text. */
export async function alternatives(wanted, signal) {
  const answer = await json('translate', { body: { text: wanted.text, ...pairOf(wanted), alternatives: 3 }, signal, wanted });
  return [...new Set(answer.details?.[0].alternatives ?? [])].filter((each) => each !== answer.translation);
}

/** The server-sent events of a body, as `{name, data}`. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let left = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (left + value).split('\n\n');
    left = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(part.split('\n').map((line) => line.split(/: (.*)/s, 2)));
      if (fields.data) yield { name: fields.event, data: JSON.parse(fields.data) };
    }
  }
}

/**
 * Upload a file; `onProgress` gets the share that was sent.
 * @returns {Promise<string>} The path of the document.
 */
export function upload(file, wanted, signal, onProgress) {
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...pairOf(wanted), file })) form.append(name, value);
  // fetch() does not tell how much of a body was sent.
  const request = new XMLHttpRequest();
  return new Promise((resolve, reject) => {
    request.open('POST', 'documents');
    for (const [name, value] of Object.entries(keyHeaders())) request.setRequestHeader(name, value);
    request.responseType = 'json';
    request.upload.onprogress = (event) => onProgress(event.total ? event.loaded / event.total : 1);
    request.onerror = () => reject(new TypeError('no answer'));
    request.onabort = () => reject(signal.reason);
    request.onload = () => {
      const { status, response } = request;
      if (status >= 300) reject(refusalOf(status, request.getResponseHeader('Retry-After'), response, wanted));
      else if (response?.id) resolve(`documents/${encodeURIComponent(response.id)}`);
      else reject(new SyntaxError('no document'));
    };
    signal.addEventListener('abort', () => request.abort(), { once: true });
    request.send(form);
  });
}

/**
 * Wait until a document is translated; `onProgress` gets the share that is.
 * @returns {Promise<{name: string, findings: Object<string, number>, content: Blob}>} The translation, and numbers of warnings by code.
 */
export async function translated(path, wanted, signal, onProgress) {
  for (;;) {
    const { state, name, progress, error, findings } = await json(path, { signal, wanted });
    if (state === 'done') return { name, findings, content: await (await call(`${path}/result`, { signal })).blob() };
    if (error) throw refusalOf(500, null, { error }, wanted);
    if (!['queued', 'translating'].includes(state)) throw new SyntaxError(`state ${state}`);
    onProgress(progress);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** End the translation of a document. */
export const cancelDocument = (path) => call(path, { method: 'DELETE' }).catch(() => { /* It ends with its time limit. */ });
