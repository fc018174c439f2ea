// What is kept: in this tab, until it is closed, its text with its languages and glossary; for all tabs the last languages.

const TAB = 'dragoman-text';
const LAST = 'dragoman-pair';
const MAX_RECENT = 5;

// A browser may have no storage, or a full one.
const read = (storage, name) => { try { return JSON.parse(globalThis[storage].getItem(name)) ?? {}; } catch { return {}; } };
const write = (storage, name, value) => {
  try {
    if (value) globalThis[storage].setItem(name, JSON.stringify(value));
    else globalThis[storage].removeItem(name);
  } catch { /* Not kept. */ }
};

/** `{text, source, target, glossary}` as `keepTab` got it; empty where there was no text. */
export const keptTab = () => read('sessionStorage', TAB);

export const keepTab = (tab) => write('sessionStorage', TAB, tab.text ? tab : null);

/** `{source, target, recent}`: the last pair, and the last targets, the latest first. */
export const lastPair = () => ({ recent: [], ...read('localStorage', LAST) });

export function keepPair({ source, target }) {
  const recent = [target, ...lastPair().recent.filter((each) => each !== target)].slice(0, MAX_RECENT);
  write('localStorage', LAST, { source, target, recent });
}
